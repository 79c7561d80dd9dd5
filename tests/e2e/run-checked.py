# SPDX-License-Identifier: MIT
"""run-checked.py PROGRAM [ARGUMENT...]: a test that is no Python, stopped in order and looked at for reports."""

import subprocess
import sys

import guard

guard.run(lambda: subprocess.run(sys.argv[1:], check=False).returncode)
