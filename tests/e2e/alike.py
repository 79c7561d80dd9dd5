# SPDX-License-Identifier: MIT
"""What tests share that do the same on a local directory and on a mount, and want the same of both."""

import errno
import os
import stat

import programs
from harness import equal


class Seen:
    """What calls gave: results, or the names of their errors."""

    def __init__(self):
        self.list = []

    def __call__(self, what, function, *args, **kw):
        try:
            result = function(*args, **kw)
        except OSError as e:
            result = errno.errorcode[e.errno]
        self.list.append((what, result))
        return result


def both(world, action):
    """action(root, seen) on a directory of this machine and on a mount; gives the sandbox to look at what came of it."""
    plain, there = Seen(), Seen()
    action(world.fresh("plain"), plain)
    with world.sandbox() as box:
        action(box.mount, there)
        for want, got in zip(plain.list, there.list):
            equal(got, want, "on the mount and on a directory")
        equal(len(there.list), len(plain.list))
        return box.sh("find . -type f | sort | while read -r f; do stat -c '%n %a %h %s' \"$f\"; cat \"$f\"; done")


def put(path, data, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode=0o666):
    fd = os.open(path, flags, mode)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def get(path):
    with open(path, "rb") as f:
        return f.read()


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def skips(test):
    def wrapped(world):
        try:
            test(world)
        except programs.Absent as e:
            print(f"     skipped: {e}")
    return wrapped


def save_by_rename(root, name, data):
    """A directory descriptor without any right, names through /proc, a temporary file that no link can lead astray."""
    d = os.open(root, os.O_PATH | os.O_DIRECTORY)
    here = f"/proc/self/fd/{d}/"
    temp = here + name + ".tmp.1.abc"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    os.write(fd, data)
    os.fsync(fd)
    if os.path.exists(here + name):
        os.fchmod(fd, mode_of(here + name))
    os.close(fd)
    os.rename(temp, here + name)
    os.close(d)


def source_tree(root, n=200):
    os.makedirs(f"{root}/src/deep", exist_ok=True)
    for i in range(n):
        path = f"{root}/src/{'deep/' if i % 2 else ''}f{i:03}.c"
        put(path, b"int f%d(void)\n{\n\treturn %d;\n}\n" % (i, i))
        os.utime(path, (1700000000 + i, 1700000000 + i))


def git(world, cwd, *args):
    return world.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args, cwd=cwd).stdout.decode()
