#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The git hooks, in a repository made for the purpose: what they change, let by and refuse."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree as lint

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "/* SPDX-License-Identifier: MIT */\n"


class Repo:
    def __init__(self, top):
        self.top = pathlib.Path(top) / "repo"
        self.bin = pathlib.Path(top) / "bin"
        self.top.mkdir()
        self.bin.mkdir()
        (self.top / "fuse").mkdir()
        shutil.copytree(ROOT / "packaging/hooks", self.top / "packaging/hooks")
        shutil.copytree(ROOT / "tests/lint", self.top / "tests/lint",
                        ignore=shutil.ignore_patterns("__pycache__", "test-*"))
        shutil.copy(ROOT / ".clang-format", self.top)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self.env.update(HOME=top, GIT_CONFIG_NOSYSTEM="1",
                        PATH=f"{self.bin}:{os.environ['PATH']}",
                        GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@example.org",
                        GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@example.org")
        self.git("init", "-q", ".")
        self.git("config", "core.hooksPath", "packaging/hooks")

    def run(self, *argv):
        return subprocess.run(argv, cwd=self.top, env=self.env, capture_output=True, text=True)

    def git(self, *args):
        done = self.run("git", *args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, message):
        return self.run("git", "commit", "-q", "--allow-empty", "-m", message)

    def stage(self, name, text):
        (self.top / name).write_text(text)
        self.git("add", name)


def formats_what_is_staged(repo):
    repo.stage("fuse/a.c", SPDX + "int   x;\n")
    done = repo.commit("fuse: add a")
    assert done.returncode == 0, done.stderr
    if shutil.which("clang-format"):
        assert repo.git("show", "HEAD:fuse/a.c") == SPDX + "int x;\n"
        assert not repo.git("status", "--short", "fuse")


def leaves_a_part_that_is_staged(repo):
    repo.stage("fuse/a.c", SPDX + "int x;\n")
    (repo.top / "fuse/a.c").write_text(SPDX + "int x;\nint  y;\n")
    done = repo.commit("fuse: add a")
    assert done.returncode == 0, done.stderr
    assert repo.git("show", "HEAD:fuse/a.c") == SPDX + "int x;\n"
    assert "int  y;" in (repo.top / "fuse/a.c").read_text()


def refuses_what_the_lints_refuse(repo):
    repo.stage("fuse/a.c", "int x;\n")
    assert "first line" in repo.commit("fuse: add a").stderr
    repo.stage("fuse/a.c", SPDX + '#include "exec/x.h"\n')
    assert "does not stand on exec" in repo.commit("fuse: add a").stderr
    assert repo.run("git", "rev-parse", "-q", "--verify", "HEAD").returncode != 0


def refuses_other_subjects(repo):
    good = ["area: do it", "common/util: do it", "x: y2", "Revert \"x\"", "fixup! y",
            "a: " + "x" * 57, "area: do it\n\nbody"]
    bad = ["do it", "Area: do it", "area:do it", "area: ", "area: do it.", "area:  do it",
           "a: " + "x" * 58, "area: do it\nbody"]
    for message in good + bad:
        (repo.top / "message").write_text(message + "\n")
        done = repo.run("packaging/hooks/commit-msg", "message")
        assert (done.returncode == 0) == (message in good), (message, done.stderr)
        assert ("commit-msg:" in done.stderr) == (message in bad), (message, done.stderr)
    assert "commit-msg:" in repo.commit("do it").stderr


def tests_before_a_push(repo):
    meson = repo.bin / "meson"
    meson.write_text('#!/bin/sh\necho "$@" >>said\nexit "$(cat status)"\n')
    meson.chmod(0o755)
    repo.commit("area: do it")
    repo.git("init", "-q", "--bare", "../other")
    (repo.top / "status").write_text("1")
    assert repo.run("git", "push", "-q", "../other", "HEAD:refs/heads/x").returncode != 0
    (repo.top / "status").write_text("0")
    assert repo.run("git", "push", "-q", "../other", "HEAD:refs/heads/x").returncode == 0
    assert "test -C build --no-suite e2e --no-suite long" in (repo.top / "said").read_text()


def main():
    if not shutil.which("git"):
        lint.skip("no git")
    tests = [formats_what_is_staged, leaves_a_part_that_is_staged, refuses_what_the_lints_refuse,
             refuses_other_subjects, tests_before_a_push]
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as top:
            try:
                test(Repo(top))
            except AssertionError as error:
                print(f"{test.__name__}: {error!r}")
                failed += 1
    print(f"{len(tests)} tests")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
