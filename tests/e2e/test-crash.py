# SPDX-License-Identifier: MIT
"""
What is left of a crash of the daemon: nothing that a program sees. The daemon is killed with
requests under way, unsent data, dirty pages, open files without a name, locks, and at random.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import harness
import mount_ops
import mountbox
from mountbox import ANSWER_S, Later, box, children, crash, is_alive, is_mounted, wait_until
from walker import Walker, Walking, tree

FULL = harness.how_many(False, False, True)


@contextlib.contextmanager
def stopped(b):
    """What is asked meanwhile is under way until the end of the block."""
    b.sidecar.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        b.sidecar.send_signal(signal.SIGCONT)


def is_answered_here(b, fn):
    """Whether it needs nobody over there: a command that has just ended may still keep the cache off."""
    with stopped(b):
        later = Later(fn)
        later.thread.join(1)
        here = later.done()
    later.get()
    return here


def test_idle(tmp):
    with box(tmp) as b:
        os.mkdir(b.mount + "/dir")
        mount_ops.put(b.mount + "/dir/file", b"before")
        with open(b.mount + "/dir/file", "rb") as f:
            crash(b)
            assert f.read() == b"before"
            assert os.fstat(f.fileno()).st_size == 6
        assert os.listdir(b.mount) == ["dir"]
        mount_ops.put(b.mount + "/dir/file", b"after it")
        assert mount_ops.get(b.workspace + "/dir/file") == b"after it"


def test_requests_under_way(tmp):
    with box(tmp) as b:
        m = b.mount + "/"
        mount_ops.put(m + "old", b"1")
        mount_ops.put(m + "gone", b"1")
        mount_ops.put(b.workspace + "/unseen", b"content")
        with stopped(b):
            made = [Later(os.mkdir, m + f"d{i}") for i in range(5)]
            renamed = Later(os.rename, m + "old", m + "new")
            removed = Later(os.unlink, m + "gone")
            linked = Later(os.symlink, "target", m + "link")
            seen = Later(mount_ops.get, m + "unseen")
            absent = Later(os.path.exists, m + "absent")
            created = Later(os.open, m + "exclusive", os.O_CREAT | os.O_EXCL | os.O_RDWR)
            time.sleep(0.1)
            assert not any(x.done() for x in [*made, renamed, removed, linked, seen, created])
            crash(b)
        for x in [*made, renamed, removed, linked]:
            x.get()
        assert seen.get() == b"content" and absent.get() is False
        os.write(created.get(), b"mine")
        os.close(created.get())
        assert sorted(os.listdir(b.workspace)) == sorted(
            ["d0", "d1", "d2", "d3", "d4", "new", "link", "unseen", "exclusive"])
        assert mount_ops.get(b.workspace + "/exclusive") == b"mine"


def test_an_open_file_that_was_closed_meanwhile(tmp):
    """The kernel had it at once and closed it; nobody over there has answered yet."""
    with box(tmp) as b:
        name = b.mount + "/x"
        mount_ops.put(name, b"hello")
        with stopped(b):
            # At once, where attributes are known by then.
            closed = Later(lambda: os.close(os.open(name, os.O_RDONLY)))
            time.sleep(0.2)
            crash(b)
        closed.get()
        wait_until(b.answers, "the next daemon is there")
        for _ in range(3):
            b.command()  # so that attributes are asked for, by an open file if there is any
            os.chmod(name, 0o600)
            os.truncate(name, 5)
            assert mount_ops.get(name) == b"hello"


def test_data_that_was_not_sent(tmp):
    with box(tmp) as b:
        plain = os.open(b.mount + "/plain", os.O_CREAT | os.O_RDWR)
        added = os.open(b.mount + "/added", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        want = b""
        for i in range(20):
            os.pwrite(plain, b"%04d" % i, 4 * i)
            os.write(added, b"line %d\n" % i)
            want += b"line %d\n" % i
            if i % 5 == 4:
                crash(b)
        assert os.pread(plain, 8, 72) == b"00180019"
        os.close(plain)
        os.close(added)
        assert mount_ops.get(b.workspace + "/added") == want
        assert mount_ops.get(b.workspace + "/plain") == b"".join(b"%04d" % i for i in range(20))


def test_long_appends(tmp):
    """Each is more than one message: none of them goes twice."""
    chance = random.Random(7)
    with box(tmp, "crashes=1000") as b:
        fd = os.open(b.mount + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        want = b""
        for i in range(12):
            stop = threading.Event()
            killer = Later(lambda: (time.sleep(chance.uniform(0, 0.02)), crash(b), stop.set()))
            while not stop.is_set():
                data = b"%06d" % len(want) * 12000
                assert os.write(fd, data) == len(data)
                want += data
                if len(want) > 20 << 20:
                    break
            killer.get()
        os.close(fd)
        assert mount_ops.get(b.workspace + "/log") == want


def test_open_files_without_a_name(tmp):
    with box(tmp) as b:
        with open(b.mount + "/gone", "w+b", buffering=0) as f:
            f.write(b"still here")
            os.unlink(b.mount + "/gone")
            crash(b)
            assert os.pread(f.fileno(), 20, 0) == b"still here"
            os.pwrite(f.fileno(), b"STILL", 0)
            os.fsync(f.fileno())
            crash(b)
            assert os.pread(f.fileno(), 20, 0) == b"STILL here"
            assert os.fstat(f.fileno()).st_nlink == 0
        assert os.listdir(b.workspace) == []


def test_dirty_pages(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/map", bytes(1 << 16))
        with open(b.mount + "/map", "r+b") as f, mmap.mmap(f.fileno(), 1 << 16) as m:
            for i in range(16):
                m[i << 12:(i << 12) + 4] = b"%04d" % i
            crash(b)
            m[100:104] = b"late"
            with stopped(b):
                # mmap.flush() would keep all other threads from running.
                view = (ctypes.c_char * len(m)).from_buffer(m)
                flushed = Later(mount_ops.libc.msync, ctypes.c_void_p(ctypes.addressof(view)),
                                ctypes.c_size_t(len(m)), 4)
                del view
                time.sleep(0.1)
                crash(b)
            assert flushed.get() == 0
        data = mount_ops.get(b.workspace + "/map")
        assert data[100:104] == b"late"
        assert all(data[i << 12:(i << 12) + 4] == b"%04d" % i for i in range(16))


def test_locks(tmp):
    with box(tmp) as b:
        with open(b.mount + "/lock", "w", encoding="ascii") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            script = ("import fcntl,sys\nf=open(sys.argv[1],'r+')\n"
                      "fcntl.lockf(f,fcntl.LOCK_EX)\nprint('got it',flush=True)\nsys.stdin.read()")
            with subprocess.Popen([sys.executable, "-c", script, b.mount + "/lock"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
                time.sleep(0.3)
                crash(b)
                assert b.command("sh", "-c", "exec 3<lock; flock -n 3 && echo free") == b"free\n"
                time.sleep(0.1)
                assert other.poll() is None
                fcntl.lockf(f, fcntl.LOCK_UN)
                assert other.stdout.readline() == b"got it\n"
                crash(b)
                mount_ops.expect_errno(errno.EAGAIN, fcntl.lockf, f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                other.stdin.close()
                other.wait(ANSWER_S)
                fcntl.lockf(f, fcntl.LOCK_EX)


def test_a_listing_goes_on(tmp):
    with box(tmp) as b:
        names = {f"name{i:05d}" for i in range(3000)}
        for name in names:
            mount_ops.put(f"{b.workspace}/{name}", b"")
        b.command()
        seen = []
        with os.scandir(b.mount) as listing:
            for i, entry in enumerate(listing):
                seen.append(entry.name)
                os.unlink(f"{b.mount}/{entry.name}")
                if i in (500, 1500):
                    crash(b)
        assert len(seen) == len(set(seen)) and set(seen) == names
        assert os.listdir(b.workspace) == []


def test_a_listing_that_still_loads(tmp):
    with box(tmp) as b:
        names = {f"name{i:05d}" for i in range(30000)}
        for name in names:
            mount_ops.put(f"{b.workspace}/{name}", b"")
        b.command()
        with os.scandir(b.mount) as listing:
            seen = [next(listing).name]
            with stopped(b):
                crash(b)
                os.unlink(f"{b.workspace}/{seen[0]}")
            for i, entry in enumerate(listing):
                seen.append(entry.name)
                if i == 2000:
                    crash(b)
        assert len(seen) == len(set(seen)) and set(seen) == names, (len(seen), len(set(seen)))


def test_what_git_is_given(tmp):
    """An open file of a repository goes on showing what it showed."""
    text = b"[core]\n\tbare = false\n\tfsmonitor = /bin/false\n\tabbrev = 12\n"
    with box(tmp) as b:
        subprocess.run(["git", "init", "-q", b.workspace], check=True)
        mount_ops.put(b.workspace + "/.git/config", text)
        os.listdir(b.mount + "/.git")
        with open(b.mount + "/.git/config", "rb", buffering=0) as f, open(b.mount + "/.git/HEAD", "rb") as head:
            shown = os.pread(f.fileno(), 4096, 0)
            assert b"abbrev" in shown and b"fsmonitor" not in shown
            for _ in range(2):
                crash(b)
                mount_ops.put(b.workspace + "/.git/config", text + b"[core]\n\tpager = false\n")
                now = os.pread(f.fileno(), 4096, 0)
                assert now == shown, (now, shown)
                assert head.read(3) in (b"ref", b": r")
        assert b"pager" not in mount_ops.get(b.mount + "/.git/config")


def test_what_git_is_being_given(tmp):
    """An open that the kernel was answered and the sidecar was not asked; then opens at whatever point they are."""
    text = b"[core]\n\tfsmonitor = /bin/false\n\tabbrev = 12\n"
    with box(tmp, "crashes=1000") as b:
        subprocess.run(["git", "init", "-q", b.workspace], check=True)
        mount_ops.put(f"{b.workspace}/.git/config", text)
        git = os.open(b.mount + "/.git", os.O_PATH)
        for name in "objects", "refs", "config":
            os.stat(name, dir_fd=git)
        shown = mount_ops.get(b.mount + "/.git/config")
        assert b"abbrev" in shown and b"fsmonitor" not in shown
        wait_until(lambda: is_answered_here(b, lambda: os.stat("config", dir_fd=git)), "nothing of it is asked for")
        with stopped(b):
            fd = Later(lambda: os.open("config", os.O_RDONLY, dir_fd=git)).get()
            crash(b)
        now = os.pread(fd, 4096, 0)
        assert now == shown, now
        os.close(fd)
        stop = threading.Event()
        seen = [0] * 4

        def look(me):
            while not stop.is_set():
                fd = os.open("config", os.O_RDONLY, dir_fd=git)
                now = os.pread(fd, 4096, 0)
                os.close(fd)
                if now != shown:
                    raise OSError(errno.EPERM, f"git was given {now}")
                seen[me] += 1

        # Left behind, it keeps the cache off: each open asks for the name, the contents and the file.
        b.command("sh", "-c", "exec sleep 1000 >/dev/null 2>&1 </dev/null &")
        looking = [Later(look, me) for me in range(len(seen))]
        for _ in range(10):
            crash(b)
            # The kernel asks for a name once more, and not a third time: so one crash for each open.
            before = list(seen)
            wait_until(lambda: all(n > m + 1 or later.done() for n, m, later in zip(seen, before, looking)), "all go on")
        stop.set()
        for later in looking:
            later.get()
        os.close(git)


def test_a_notify_under_way(tmp):
    """The kernel is being told to forget a page that waits for the daemon."""
    with box(tmp) as b:
        mount_ops.put(b.workspace + "/file", b"x" * 8192)
        wait_until(lambda: is_answered_here(b, lambda: os.stat(b.mount + "/file")), "the kernel may keep it")
        with open(b.mount + "/file", "r+b", buffering=0) as f:
            notifier = b.processes()[1]
            with stopped(b):
                reads = Later(os.pread, f.fileno(), 4096, 4096)
                time.sleep(0.1)
                run = subprocess.Popen([f"{os.environ['RSB_TEST_BUILD']}/tests/e2e/run-there", b.socket, "true"],
                                       stderr=subprocess.DEVNULL)
                wait_until(lambda: state_of(notifier) == "D", "the notifier waits")
                crash(b)
            assert reads.get() == b"x" * 4096
            assert run.wait(ANSWER_S) != 0
        assert b.command("cat", "file") == b"x" * 8192


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def test_links_and_what_the_kernel_keeps(tmp):
    with box(tmp) as b:
        os.makedirs(b.mount + "/a/b")
        mount_ops.put(b.mount + "/a/file", b"file")
        os.symlink("../file", b.mount + "/a/b/link")
        assert mount_ops.get(b.mount + "/a/b/link") == b"file"
        crash(b)
        assert mount_ops.get(b.mount + "/a/b/link") == b"file"
        b.command("sh", "-c", "echo other > a/file; mkdir a/c")
        assert mount_ops.get(b.mount + "/a/b/link") == b"other\n"
        assert sorted(os.listdir(b.mount + "/a")) == ["b", "c", "file"]


def test_commands_are_lost_and_ended(tmp):
    with box(tmp) as b:
        b.command("sh", "-c", "(sleep 1; echo yes > left) >/dev/null 2>&1 &")
        run = subprocess.Popen(
            [f"{os.environ['RSB_TEST_BUILD']}/tests/e2e/run-there", b.socket,
             "sh", "-c", "echo $$ > pid; exec sleep 1000"], stderr=subprocess.PIPE)
        wait_until(lambda: os.path.exists(b.workspace + "/pid"), "the command")
        wait_until(lambda: mount_ops.get(b.workspace + "/pid"), "its number")
        crash(b)
        assert run.wait(ANSWER_S) != 0
        run.stderr.close()
        pid = int(mount_ops.get(b.workspace + "/pid"))
        wait_until(lambda: not is_alive(pid), "the end of the command")
        wait_until(lambda: os.path.exists(b.mount + "/left"), "what goes on")
        assert b.command("echo", "again") == b"again\n"


def test_a_notifier_that_is_killed(tmp):
    with box(tmp) as b:
        for i in range(3):
            mount_ops.put(b.mount + "/file", b"%d" % i)
            notifier = b.processes()[1]
            os.kill(notifier, signal.SIGKILL)
            wait_until(lambda: children(b.supervisor.pid).get("rsb-notify", notifier) != notifier,
                       "a new notifier")
            assert b.command("cat", "file") == b"%d" % i
            b.command("sh", "-c", f"echo new{i} > file")
            assert mount_ops.get(b.mount + "/file") == b"new%d\n" % i


def test_a_supervisor_that_is_killed(tmp):
    with box(tmp) as b:
        pids = b.processes()
        fd = os.open(b.mount + "/file", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"unsent")
        b.supervisor.kill()
        b.gone(*pids)
        mount_ops.expect_errno(errno.ENOTCONN, os.close, fd)
        assert mount_ops.get(b.workspace + "/file") == b"unsent"


def test_a_daemon_that_dies_again_and_again(tmp):
    with box(tmp, "crashes=2") as b:
        with stopped(b):
            waits = Later(os.mkdir, b.mount + "/dir")
            time.sleep(0.1)
            crash(b)
            crash(b)
            os.kill(b.processes()[0], signal.SIGKILL)
            wait_until(lambda: not is_mounted(b.mount), "unmount")
            mount_ops.expect_errno(errno.EIO, waits.get)
        b.supervisor.wait(ANSWER_S)


def test_a_kernel_that_cannot(tmp):
    with box(tmp, "noepoch") as b:
        pids = b.processes()
        with stopped(b):
            waits = Later(os.mkdir, b.mount + "/dir")
            time.sleep(0.1)
            os.kill(pids[0], signal.SIGKILL)
            mount_ops.expect_errno(errno.EIO, waits.get)
        b.gone(*pids)


# ---- at random ----

def crash_at_random(tmp, seed, n_crash):
    chance = random.Random(seed)
    with box(tmp, "crashes=1000") as b:
        model = tempfile.mkdtemp(dir=tmp)
        walkers = [Walker(f"{b.mount}/w{i}", f"{model}/w{i}", seed * 10 + i) for i in range(3)]
        walking = Walking(walkers, seed)
        for _ in range(n_crash):
            time.sleep(chance.uniform(0, 0.15))
            if walking.stop.is_set():
                break
            # Also while the one before is only coming up.
            for _ in range(chance.choice((1, 1, 2, 3))):
                crash(b)
                time.sleep(chance.uniform(0, 0.05))
        time.sleep(0.1)
        walking.end()
        print(f"     seed {seed}: {[w.n for w in walkers]} operations", flush=True)
        want = tree(model)
        assert tree(b.mount) == want, "mount"
        assert tree(b.workspace) == want, "workspace"


def test_crashes_at_random(tmp):
    first = int(os.environ.get("RSB_SEED", "1"))
    for seed in range(first, first + (10 if FULL else 2)):
        crash_at_random(tmp, seed, 10 if FULL else 6)


mountbox.main(globals())
