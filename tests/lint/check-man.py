#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mandoc has nothing to say about our manual pages."""

import re
import shutil
import subprocess

import tree as lint

PAGE = re.compile(r"man/[^/]+\.[1-8]")


def check(tree):
    names = [n for n in tree.names if PAGE.fullmatch(n)]
    if not names:
        return
    tool = shutil.which("mandoc")
    if not tool:
        lint.skip("no mandoc")
    done = subprocess.run([tool, "-T", "lint", "-W", "warning", *names],
                          cwd=tree.root, capture_output=True, text=True)
    if done.returncode != 0:
        yield (done.stdout + done.stderr).rstrip()


if __name__ == "__main__":
    lint.main(__doc__, check)
