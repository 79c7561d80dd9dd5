# SPDX-License-Identifier: MIT
"""A directory and the sandbox that it went into, and what is the same in both."""

import contextlib
import json
import os
import pathlib


def tree(root):
    """What is below a directory, as one can compare it."""
    found = {}
    for folder, dirs, files in os.walk(os.fsencode(root)):
        for name in dirs + files:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, os.fsencode(root))
            if key.split(b"/")[0] == b".rsb":
                continue
            if os.path.islink(path):
                found[key] = ("link", os.readlink(path))
            elif os.path.isdir(path):
                found[key] = ("dir",)
            else:
                with open(path, "rb") as f:
                    found[key] = ("file", os.lstat(path).st_mode & 0o777, f.read())
    return found


def put(root, **files):
    for name, text in files.items():
        path = pathlib.Path(root, name.replace("__", "/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def sync(world, box, *args, status=0):
    r = world.rsb("sync", *args, "--json", box.name, check_status=status)
    return json.loads(r.stdout) if r.stdout else r


def paths(answer, key):
    return sorted(item["path"] for item in answer[key])


@contextlib.contextmanager
def project(world, **files):
    source = world.fresh("src")
    put(source, **files)
    with world.sandbox(source) as box:
        yield box
