#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-format has nothing to change. Another version has another opinion, so it is not asked."""

import re
import shutil
import subprocess

import tree as lint

VERSION = 14


def check(tree):
    tool = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    if not tool:
        lint.skip(f"no clang-format {VERSION}")
    said = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)", said)
    if not found or int(found.group(1)) != VERSION:
        lint.skip(f"{tool} is not version {VERSION}")
    names = tree.c_files()
    if not names:
        return
    done = subprocess.run([tool, "--dry-run", "--Werror", "--style=file", *names],
                          cwd=tree.root, capture_output=True, text=True)
    if done.returncode != 0:
        yield done.stderr.rstrip() or f"{tool} ended with {done.returncode}"


if __name__ == "__main__":
    lint.main(__doc__, check)
