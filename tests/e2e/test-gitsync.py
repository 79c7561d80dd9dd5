# SPDX-License-Identifier: MIT
"""A repository and the sandbox that it went into, with git at work on both sides."""

import contextlib
import json
import os
import pathlib

import harness
from harness import check, equal

ALL = ("comes", "goes", "conflicts", "held", "missed", "stays")


def git(world, where, *args, **kw):
    return world.run("git", *args, cwd=where, **kw).stdout.decode().strip()


def commit(world, where, name, text):
    pathlib.Path(where, name).write_text(text, encoding="utf-8")
    git(world, where, "add", name)
    git(world, where, "commit", "-q", "-m", name)


def sync(world, box, *args, status=0):
    return json.loads(world.rsb("sync", *args, "--json", box.name, check_status=status).stdout)


def paths(answer, key):
    return sorted(item["path"] for item in answer[key])


@contextlib.contextmanager
def repository(world, n=2):
    source = pathlib.Path(world.fresh("src"))
    git(world, source, "init", "-q", "-b", "main")
    for i in range(n):
        commit(world, source, f"f{i}", f"{i}")
    with world.sandbox(str(source)) as box:
        box.sh("git config --global user.name t; git config --global user.email t@example.org")
        yield box, source


def restat(world, where, seconds, name="f0"):
    """Git writes its index anew, with what the file looks like now."""
    os.utime(pathlib.Path(where, name), (seconds, seconds))
    before = pathlib.Path(where, ".git/index").read_bytes()
    git(world, where, "status")
    check(pathlib.Path(where, ".git/index").read_bytes() != before, "the index is written anew")


def test_status_on_both_sides_is_no_conflict(world):
    with repository(world) as (box, source):
        restat(world, source, 10**9)
        box.sh("touch -d @1000000000 f1; git status")
        equal(paths(sync(world, box, "out"), "conflicts"), [])
        restat(world, source, 10**9 + 1)
        box.sh("touch -d @1000000001 f1; git status")
        equal(paths(sync(world, box, "in"), "conflicts"), [])


def test_what_is_staged_is_not_lost_over_a_status(world):
    with repository(world) as (box, source):
        restat(world, source, 10**9)
        box.sh("echo -n there > new; git add new")
        equal(paths(sync(world, box, "out"), "conflicts"), [])
        equal(git(world, source, "diff", "--cached", "--name-only"), "new")
        # And the other way.
        box.sh("touch -d @1000000000 f1; git status")
        pathlib.Path(source, "more").write_text("here", encoding="utf-8")
        git(world, source, "add", "more")
        equal(paths(sync(world, box, "in"), "conflicts"), [])
        equal(box.sh("git diff --cached --name-only").split(), ["more", "new"])
        equal({k: paths(sync(world, box, "status"), k) for k in ALL}, {k: [] for k in ALL})


def test_the_same_on_both_sides_is_no_conflict_for_sync_in(world):
    with repository(world) as (box, source):
        pathlib.Path(source, "f0").write_text("twin", encoding="utf-8")
        pathlib.Path(source, "f1").write_text("here", encoding="utf-8")
        box.sh("echo -n twin > f0; echo -n thre > f1")
        equal(paths(sync(world, box, "in", status=1), "conflicts"), ["f1"])
        check(not pathlib.Path(source, ".rsb").exists(), "no stage is left")


harness.main(globals())
