#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""shellcheck has nothing to say about our shell scripts."""

import re
import shutil
import subprocess

import tree as lint

SHELL = re.compile(r"#!\s*(?:/usr/bin/env\s+|/bin/|/usr/bin/)(?:ba|da)?sh\b")


def check(tree):
    tool = shutil.which("shellcheck")
    if not tool:
        lint.skip("no shellcheck")
    names = [n for n in tree.names
             if n.endswith(".sh") or SHELL.match(tree.text(n) or "")]
    if not names:
        return
    done = subprocess.run([tool, "--external-sources", "--source-path=SCRIPTDIR", *names],
                          cwd=tree.root, capture_output=True, text=True)
    if done.returncode != 0:
        yield (done.stdout + done.stderr).rstrip()


if __name__ == "__main__":
    lint.main(__doc__, check)
