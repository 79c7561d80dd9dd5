# SPDX-License-Identifier: MIT
"""What the lints share: which files belong to the tree, and how a finding is said."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

SKIP = 77  # what meson takes for "skipped"
C_SUFFIXES = {".c", ".h"}


def from_git(root):
    """Tracked and staged files, or None outside of a repository of its own."""
    if not (root / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True)
    if done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def from_disk(root):
    """Every file but what .gitignore names: a release has no repository."""
    names = []
    for top, dirs, files in os.walk(root):
        dirs[:] = [d for d in dirs if d not in (".git", "__pycache__")
                   and not (top == str(root) and d.startswith("build"))]
        names += [os.path.relpath(os.path.join(top, f), root) for f in files if f != ".git"]
    return names


class Tree:
    def __init__(self, root, build=None):
        self.root = pathlib.Path(root)
        self.build = build and os.path.abspath(build)  # None: nothing was built
        names = from_git(self.root)
        if names is None:
            names = from_disk(self.root)
        self.names = sorted(n for n in names if os.path.isfile(self.root / n))

    def c_files(self):
        return [n for n in self.names if pathlib.PurePath(n).suffix in C_SUFFIXES]

    def text(self, name):
        """The text of a file, or None if it is binary."""
        data = (self.root / name).read_bytes()
        if b"\0" in data:
            return None
        return data.decode("utf-8", "surrogateescape")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


CODE = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def code_only(text, strings=False):
    """C without comments and, unless they stay, strings and characters; lines keep their places."""
    return CODE.sub(lambda m: m.group(0) if strings and m.group(0)[0] != "/" else blank(m), text)


def main(doc, check):
    """Runs check(tree), which yields findings, and ends with what meson wants."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("build", nargs="?")
    args = parser.parse_args()
    tree = Tree(args.root, args.build)
    n = 0
    for finding in check(tree):
        print(finding)
        n += 1
    sys.exit(1 if n else 0)


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIP)
