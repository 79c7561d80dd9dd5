# SPDX-License-Identifier: MIT
"""One round trip: each mutating call on the mount, and each command, against a recording path of 200 ms.

The names were looked up before. For each row: how many mutating messages left, and that it took at
most 1.5 round trips for each mutating call.
"""

import contextlib
import fcntl
import os
import shutil
import time

import harness
from harness import check, equal

RTT = 0.2


class Row:
    """with Row(...): the calls of one row; then its messages and its time are checked.

    extra: seconds that it takes without any distance. none_of: messages that would not be needed.
    """

    def __init__(self, proxy, name, calls, messages=None, extra=0.0, none_of=()):
        self.proxy, self.name, self.calls, self.extra, self.none_of = proxy, name, calls, extra, none_of
        self.messages = calls if messages is None else messages

    def __enter__(self):
        # What the last row sent without waiting must not count here.
        time.sleep(2 * RTT)
        self.proxy.record()
        self.start = time.monotonic()
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            return
        took = time.monotonic() - self.start
        record = self.proxy.record()
        trips = (took - self.extra) / RTT
        print(f"     {self.name}: {record['mutations']} messages, {trips:.2f} round trips", flush=True)
        equal(record["mutations"], self.messages, f"{self.name}: mutating messages of {record}")
        equal([m for m in self.none_of if m in record], [], f"{self.name}: messages of {record}")
        check(trips <= 1.5 * self.calls + 0.25, f"{self.name}: took {trips:.2f} round trips for {self.calls} calls")


def touch(box, *names):
    for n in names:
        box.write(n, b"x")
        os.stat(box.path(n))


def known(box, *names):
    """Names that do not exist, looked up."""
    for n in names:
        check(not os.path.exists(box.path(n)), f"{n} exists")


def rows_on_names(proxy, box):
    known(box, "d", "l", "s", "n", "x")
    touch(box, "a", "b")
    with Row(proxy, "mkdir", 1):
        os.mkdir(box.path("d"))
    with Row(proxy, "rmdir", 1):
        os.rmdir(box.path("d"))
    with Row(proxy, "symlink", 1):
        os.symlink("a", box.path("s"))
    with Row(proxy, "link", 1):
        os.link(box.path("a"), box.path("l"))
    with Row(proxy, "rename", 1):
        os.rename(box.path("a"), box.path("n"))
    with Row(proxy, "rename over", 1):
        os.rename(box.path("n"), box.path("b"))
    with Row(proxy, "unlink", 1):
        os.unlink(box.path("b"))
    with Row(proxy, "mkfifo", 1):
        os.mkfifo(box.path("x"))


def rows_in_a_new_directory(proxy, box):
    known(box, "new")
    with Row(proxy, "mkdir, then create in it", 3, none_of=["lookup"]):
        os.mkdir(box.path("new"))
        box.write("new/a", b"a")
    with Row(proxy, "what is absent in it", 0):
        check(not os.path.exists(box.path("new/b")), "new/b is there")
    with Row(proxy, "list it, and stat each name", 1, messages=0, none_of=["lookup", "getattr"]):
        equal([os.stat(box.path("new", n)).st_size for n in os.listdir(box.path("new"))], [1])
    # As rm(1) does: the first reading ends before the end of the directory.
    os.mkdir(box.path("new/deep"))
    with Row(proxy, "list half of it, then all of it", 1, messages=0):
        with os.scandir(box.path("new")) as entries:
            next(entries)
        equal(sorted(os.listdir(box.path("new"))), ["a", "deep"])
    with Row(proxy, "rm -r", 3, none_of=["lookup"]):
        shutil.rmtree(box.path("new"))


def rows_on_attributes(proxy, box):
    touch(box, "f")
    path = box.path("f")
    with Row(proxy, "chmod", 1):
        os.chmod(path, 0o600)
    with Row(proxy, "utimens", 1):
        os.utime(path, ns=(1, 2))
    with Row(proxy, "truncate", 1):
        os.truncate(path, 10)
    with Row(proxy, "setxattr", 1):
        os.setxattr(path, "user.k", b"v")
    with Row(proxy, "removexattr", 1):
        os.removexattr(path, "user.k")


@contextlib.contextmanager
def without_distance(proxy):
    time.sleep(2 * RTT)
    proxy.command("rtt 0")
    try:
        yield
    finally:
        proxy.command(f"rtt {int(RTT * 1000)}")


def stream(path):
    with open(path, "r+b", buffering=0) as f:
        for _ in range(8):
            f.write(b"w" * (1 << 20))


def rows_on_files(proxy, box):
    known(box, "n1", "n2", "n3", "t", "n4")
    touch(box, "target", "big")
    with Row(proxy, "create, write, close", 2):
        with open(box.path("n1"), "wb") as f:
            f.write(b"y" * 5000)
    with Row(proxy, "create, write, fstat, close", 2):
        fd = os.open(box.path("n2"), os.O_CREAT | os.O_WRONLY | os.O_EXCL)
        os.write(fd, b"y" * 5000)
        equal(os.fstat(fd).st_size, 5000)
        os.close(fd)
    # One write goes out with the fsync: three calls wait.
    with Row(proxy, "write temporary, fsync, rename over", 3):
        fd = os.open(box.path("t"), os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"z" * 100)
        os.fsync(fd)
        os.close(fd)
        os.rename(box.path("t"), box.path("target"))
    fd = os.open(box.path("big"), os.O_WRONLY)
    with Row(proxy, "fsync with nothing unsent", 1, messages=0):
        os.fsync(fd)
    with Row(proxy, "write, fsync", 1):
        os.write(fd, b"q" * 100)
        os.fsync(fd)
    with Row(proxy, "close with nothing unsent", 0):
        os.close(fd)
    with without_distance(proxy):
        start = time.monotonic()
        stream(box.path("big"))
        bare = time.monotonic() - start
    with Row(proxy, "open, stream 8 MiB, close", 1, messages=-(-(8 << 20) // 61440), extra=bare):
        stream(box.path("big"))


def rows_on_locks(proxy, box):
    touch(box, "locked")
    with open(box.path("locked"), "r+b") as f:
        with Row(proxy, "flock", 1, messages=0):
            fcntl.flock(f, fcntl.LOCK_EX)
        with Row(proxy, "unlock", 1, messages=0):
            fcntl.flock(f, fcntl.LOCK_UN)
        with Row(proxy, "fcntl lock", 1, messages=0):
            fcntl.lockf(f, fcntl.LOCK_EX)


@contextlib.contextmanager
def far_sandbox(world):
    with world.sandbox() as box:
        server = world.local_server()
        world.rsb("umount", box.name)
        proxy = harness.DelayProxy(server["port"], int(RTT * 1000))
        try:
            url = f"http://127.0.0.1:{proxy.port}"
            world.rsb("mount", box.name, box.mount, env={"RSB_LOCAL_URL": url})
            yield proxy, box
        finally:
            world.rsb("umount", box.name)
            proxy.close()


def test_each_mutating_call_is_one_round_trip(world):
    with far_sandbox(world) as (proxy, box):
        for rows in (rows_on_names, rows_in_a_new_directory, rows_on_attributes, rows_on_files, rows_on_locks):
            rows(proxy, box)


def least_of(n, fn):
    """Seconds of the quickest: how long it takes, not how busy the machine is."""
    def once():
        start = time.monotonic()
        fn()
        return time.monotonic() - start
    return min(once() for _ in range(n))


def check_command(proxy, what, command, begins=True, most=1.5):
    """What it asks for leaves at once, and nothing of it waits for an answer before."""
    with without_distance(proxy):
        command()
        bare = least_of(5, command)
    time.sleep(2 * RTT)
    proxy.record()
    command()
    time.sleep(2 * RTT)
    record = proxy.record()
    trips = (least_of(5, command) - bare) / RTT
    print(f"     {what}: {record}, {trips:.2f} round trips and {bare * 1000:.0f} ms", flush=True)
    equal([record.get(m, 0) for m in ("spawn", "wait", "proc_free")], [1, 2, int(begins)], f"{what}: messages of {record}")
    equal([m for m in ("lookup", "getattr") if m in record], [], f"{what}: messages of {record}")
    check(trips <= most, f"{what}: took {trips:.2f} round trips")


def test_a_command_is_one_round_trip(world):
    with far_sandbox(world) as (proxy, box):
        here = os.getcwd()
        # Entering a directory asks for its attributes, which is not the command's doing.
        os.chdir(box.mount)
        try:
            check_command(proxy, "rsb-exec true", lambda: box.exec("true", cwd=None))
            check_command(proxy, "rsb-exec echo", lambda: equal(box.exec("echo", "x", cwd=None).stdout, b"x\n"))
            # Input goes when the far side has said that it takes some.
            check_command(proxy, "rsb-exec cat", lambda: equal(box.exec("cat", cwd=None, input=b"y").stdout, b"y"), most=2.5)
            check_command(proxy, "a command that is not there",
                          lambda: box.exec("no-such-command", cwd=None, check_status=127), begins=False)
        finally:
            os.chdir(here)


def test_what_a_command_loads(world):
    """Each library costs a command time before its request leaves."""
    with open(os.path.realpath(f"{world.bin}/rsb-exec"), "rb") as f:
        check(b"libcurl.so" not in f.read(), "rsb-exec loads libcurl")


harness.main(globals())
