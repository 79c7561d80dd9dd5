# SPDX-License-Identifier: MIT
"""
The sidecar is killed, with requests under way, open files, locks and commands; another process of
it goes on. What was done was done once, what is not known is said, and no program sees more.
"""

import collections
import contextlib
import errno
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time

import mount_ops
import mountbox
from mountbox import ANSWER_S, Later, crash, is_alive, wait_until
from restartbox import box, said, went_on


def test_idle(tmp):
    with box(tmp) as b:
        os.mkdir(b.mount + "/dir")
        mount_ops.put(b.mount + "/dir/file", b"before")
        with open(b.mount + "/dir/file", "rb") as f:
            for i in range(3):
                b.restart_sidecar()
                f.seek(0)
                assert f.read() == b"before"
                assert os.fstat(f.fileno()).st_size == 6
                mount_ops.put(b.mount + f"/dir/file{i}", b"after it")
        assert mount_ops.get(b.workspace + "/dir/file0") == b"after it"
        assert b.command("echo", "hello") == b"hello\n"
        went_on(b, 3)


def test_requests_that_were_never_begun(tmp):
    with box(tmp) as b:
        m = b.mount + "/"
        mount_ops.put(m + "old", b"1")
        mount_ops.put(m + "gone", b"1")
        mount_ops.put(b.workspace + "/unseen", b"content")
        b.sidecar.send_signal(signal.SIGSTOP)
        made = [Later(os.mkdir, m + f"d{i}") for i in range(5)]
        renamed = Later(os.rename, m + "old", m + "new")
        removed = Later(os.unlink, m + "gone")
        linked = Later(os.symlink, "target", m + "link")
        seen = Later(mount_ops.get, m + "unseen")
        absent = Later(os.path.exists, m + "absent")
        created = Later(os.open, m + "exclusive", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        time.sleep(0.1)
        assert not any(x.done() for x in [*made, renamed, removed, linked, seen, created])
        b.restart_sidecar()
        for x in [*made, renamed, removed, linked]:
            x.get()
        assert seen.get() == b"content" and absent.get() is False
        os.write(created.get(), b"mine")
        os.close(created.get())
        assert sorted(os.listdir(b.workspace)) == sorted(
            ["d0", "d1", "d2", "d3", "d4", "new", "link", "unseen", "exclusive"])
        assert mount_ops.get(b.workspace + "/exclusive") == b"mine"


def test_open_files(tmp):
    with box(tmp) as b:
        plain = os.open(b.mount + "/plain", os.O_CREAT | os.O_RDWR)
        added = os.open(b.mount + "/added", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        want = b""
        for i in range(20):
            os.pwrite(plain, b"%04d" % i, 4 * i)
            os.write(added, b"line %d\n" % i)
            want += b"line %d\n" % i
            if i % 5 == 4:
                b.restart_sidecar()
        assert os.pread(plain, 8, 72) == b"00180019"
        os.rename(b.mount + "/plain", b.mount + "/moved")
        b.restart_sidecar()
        os.fsync(plain)
        os.ftruncate(plain, 40)
        assert os.fstat(plain).st_size == 40
        os.close(plain)
        os.close(added)
        assert mount_ops.get(b.workspace + "/added") == want
        assert mount_ops.get(b.workspace + "/moved") == b"".join(b"%04d" % i for i in range(10))


def test_appends_are_not_repeated(tmp):
    chance = random.Random(7)
    with box(tmp) as b:
        fd = os.open(b.mount + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        n, failed, restarts = 0, set(), 12
        for _ in range(restarts):
            stop = threading.Event()
            killer = Later(lambda: (time.sleep(chance.uniform(0, 0.03)), b.restart_sidecar(), stop.set()))
            while not stop.is_set() and n < 300:
                try:
                    assert os.write(fd, b"%06d" % n * 12000) == 72000
                except OSError as e:
                    assert e.errno == errno.EIO
                    failed.add(n)
                n += 1
            killer.get()
        told = bool(failed)
        try:
            os.close(fd)
        except OSError as e:
            assert e.errno == errno.EIO
            told = True
        got = mount_ops.get(b.workspace + "/log")
        # Messages begin and end at a number: each is there once, in its order, or was unknown.
        numbers = [int(got[i:i + 6]) for i in range(0, len(got), 6)]
        assert numbers == sorted(numbers)
        counts = collections.Counter(numbers)
        missing = {i: 12000 - counts[i] for i in range(n) if counts[i] != 12000 and i not in failed}
        assert all(m > 0 for m in missing.values()), missing
        # A restart makes at most one message unknown.
        assert sum(missing.values()) * 6 <= restarts * 61440, missing
        assert told or not missing, missing
        if missing:
            wait_until(lambda: said(b, "unknown"), "what is unknown is named")


def test_a_file_with_two_names(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/one", b"text")
        with open(b.mount + "/one", "r+b", buffering=0) as f:
            os.link(b.mount + "/one", b.mount + "/two")
            os.unlink(b.mount + "/two")
            b.restart_sidecar()
            assert f.read() == b"text"
            os.link(b.mount + "/one", b.mount + "/three")
            os.unlink(b.mount + "/one")
            b.restart_sidecar()
            assert os.pread(f.fileno(), 4, 0) == b"text"


def test_a_file_with_two_names_and_a_crash(tmp):
    """The next daemon knows both, also when it never saw the file."""
    with box(tmp) as b:
        m = b.mount
        for name in "unseen", "seen":
            mount_ops.put(f"{m}/{name}1", b"text")
        with open(m + "/unseen1", "r+b", buffering=0) as f, open(m + "/seen1", "r+b", buffering=0) as g:
            for name in "unseen", "seen":
                os.link(f"{m}/{name}1", f"{m}/{name}2")
            crash(b)
            os.unlink(b.workspace + "/unseen2")
            os.unlink(m + "/seen2")
            os.link(m + "/seen1", m + "/seen3")
            os.unlink(m + "/seen1")
            b.restart_sidecar()
            for fd in f.fileno(), g.fileno():
                assert os.pread(fd, 4, 0) == b"text"
                os.pwrite(fd, b"more", 0)
                os.fsync(fd)
        assert mount_ops.get(b.workspace + "/unseen1") == mount_ops.get(b.workspace + "/seen3") == b"more"


def test_a_file_without_a_name_is_stale(tmp):
    with box(tmp) as b:
        with open(b.mount + "/gone", "w+b", buffering=0) as f, open(b.mount + "/here", "wb", buffering=0) as g:
            f.write(b"lost")
            os.unlink(b.mount + "/gone")
            g.write(b"kept")
            b.restart_sidecar()
            mount_ops.expect_errno(errno.ESTALE, os.pread, f.fileno(), 20, 0)
            mount_ops.expect_errno(errno.ESTALE, os.pwrite, f.fileno(), b"x", 0)
            mount_ops.expect_errno(errno.ESTALE, os.fsync, f.fileno())
            mount_ops.expect_errno(errno.ESTALE, os.fstat, f.fileno())
            g.write(b" too")
            os.fsync(g.fileno())
            mount_ops.expect_errno(errno.ESTALE, os.close, os.dup(f.fileno()))
            with contextlib.suppress(OSError):
                f.close()
        assert mount_ops.get(b.workspace + "/here") == b"kept too"
        wait_until(lambda: any("gone" in line for line in said(b, "lost")), "it is named")


def test_data_that_nobody_can_take_any_more(tmp):
    """It was written, and not sent: close tells."""
    with box(tmp) as b:
        fd = os.open(b.mount + "/file", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"unsent")
        os.unlink(b.workspace + "/file")
        b.restart_sidecar()
        went_on(b, 1)
        mount_ops.expect_errno(errno.ESTALE, os.close, fd)


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
                    b.restart_sidecar()
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
            b.restart_sidecar()
            for i, entry in enumerate(listing):
                seen.append(entry.name)
                if i == 2000:
                    b.restart_sidecar()
        assert len(seen) == len(set(seen)) and set(seen) == names, (len(seen), len(set(seen)))


def test_a_working_directory(tmp):
    with box(tmp) as b:
        os.makedirs(b.mount + "/a/b/c")
        with subprocess.Popen(["sh", "-c", "cd a/b/c && echo there && read x && pwd -P && mkdir made && ls"],
                              cwd=b.mount, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
            assert shell.stdout.readline() == b"there\n"
            os.rename(b.mount + "/a/b", b.mount + "/moved")
            b.restart_sidecar()
            out, _ = shell.communicate(b"\n", timeout=ANSWER_S)
        assert out == f"{b.mount}/moved/c\nmade\n".encode(), out


def test_locks(tmp):
    with box(tmp) as b:
        for name in ("posix", "flock", "free", "unlocked"):
            mount_ops.put(b.mount + "/" + name, b"text")
        with contextlib.ExitStack() as stack:
            def opened(name):
                return stack.enter_context(open(b.mount + "/" + name, "r+b", buffering=0))
            posix, flock, free, unlocked = map(opened, ("posix", "flock", "free", "unlocked"))
            fcntl.lockf(posix, fcntl.LOCK_EX, 10, 5)
            fcntl.flock(flock, fcntl.LOCK_SH)
            fcntl.lockf(unlocked, fcntl.LOCK_EX)
            fcntl.flock(unlocked, fcntl.LOCK_EX)
            fcntl.lockf(unlocked, fcntl.LOCK_UN)
            fcntl.flock(unlocked, fcntl.LOCK_UN)
            posix.write(b"not sent")
            b.restart_sidecar()
            went_on(b, 1)
            for f in (posix, flock):
                mount_ops.expect_errno(errno.EIO, os.pread, f.fileno(), 4, 0)
                mount_ops.expect_errno(errno.EIO, os.pwrite, f.fileno(), b"x", 0)
                mount_ops.expect_errno(errno.EIO, fcntl.flock, f, fcntl.LOCK_EX)
                mount_ops.expect_errno(errno.EIO, os.fsync, f.fileno())
                mount_ops.expect_errno(errno.EIO, os.ftruncate, f.fileno(), 0)
            for f in (free, unlocked):
                assert os.pread(f.fileno(), 4, 0) == b"text"
                fcntl.lockf(f, fcntl.LOCK_EX)
            with open(b.mount + "/posix", "r+b", buffering=0) as again:
                fcntl.lockf(again, fcntl.LOCK_EX)
                assert again.read() == b"text"
            for f in (posix, flock):
                with contextlib.suppress(OSError):
                    f.close()
        lost = "\n".join(said(b, "lost"))
        assert "posix" in lost and "flock" in lost and "free" not in lost and "unlocked" not in lost, lost


def test_a_lock_that_is_waited_for(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/lock", b"")
        with open(b.mount + "/lock", "r+b") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            with open(b.mount + "/lock", "rb"):
                pass  # and has it no more, as POSIX wants it
            fcntl.lockf(f, fcntl.LOCK_EX)
            script = ("import fcntl,sys\nf=open(sys.argv[1],'r+')\nprint('asks',flush=True)\n"
                      "fcntl.lockf(f,fcntl.LOCK_EX)\nprint('got it',flush=True)\nsys.stdin.read()")
            with subprocess.Popen([sys.executable, "-c", script, b.mount + "/lock"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
                assert other.stdout.readline() == b"asks\n"
                time.sleep(0.2)
                b.restart_sidecar()
                # The one who had it has it no more.
                assert other.stdout.readline() == b"got it\n"
                assert b.command("sh", "-c", "exec 3<lock; flock -n 3 && echo free") == b"free\n"
                other.stdin.close()
                assert other.wait(ANSWER_S) == 0
            mount_ops.expect_errno(errno.EIO, os.fsync, f.fileno())
            with contextlib.suppress(OSError):
                f.close()


def test_a_lock_that_a_crash_makes_unknown(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/lock", b"")
        with open(b.mount + "/lock", "r+b", buffering=0) as f, open(b.mount + "/other", "w+b", buffering=0) as g:
            fcntl.lockf(f, fcntl.LOCK_EX)
            crash(b)
            b.restart_sidecar()
            went_on(b, 1)
            mount_ops.expect_errno(errno.EIO, os.pwrite, f.fileno(), b"x", 0)
            assert os.pread(g.fileno(), 4, 0) == b""
            with contextlib.suppress(OSError):
                f.close()


def test_a_command_is_lost(tmp):
    with box(tmp) as b:
        run = subprocess.Popen(
            [f"{os.environ['RSB_TEST_BUILD']}/tests/e2e/run-there", b.socket,
             "sh", "-c", "echo $$ > pid; exec sleep 1000"], stderr=subprocess.PIPE)
        wait_until(lambda: os.path.exists(b.workspace + "/pid") and mount_ops.get(b.workspace + "/pid"), "its number")
        pid = int(mount_ops.get(b.workspace + "/pid"))
        b.restart_sidecar()
        assert run.wait(ANSWER_S) != 0
        run.stderr.close()
        wait_until(lambda: not is_alive(pid), "the end of the command")
        wait_until(lambda: any("sleep 1000" in line for line in said(b, "lost")), "it is named")
        assert b.command("echo", "again") == b"again\n"
        mount_ops.put(b.mount + "/file", b"1")
        os.stat(b.mount + "/file")


def test_restarts_in_a_row(tmp):
    """Also while the one before is only being told."""
    with box(tmp) as b:
        for i in range(2000):
            mount_ops.put(f"{b.workspace}/f{i}", b"%d" % i)
        os.listdir(b.mount)
        files = [open(f"{b.mount}/f{i}", "r+b", buffering=0) for i in range(200)]
        chance = random.Random(3)
        for _ in range(10):
            b.restart_sidecar()
            time.sleep(chance.uniform(0, 0.02))
        for i, f in enumerate(files):
            assert f.read() == b"%d" % i
            f.write(b"!")
            f.close()
        assert mount_ops.get(b.workspace + "/f199") == b"199!"


def test_the_daemon_is_killed_meanwhile(tmp):
    with box(tmp, "crashes=1000") as b:
        for i in range(2000):
            mount_ops.put(f"{b.workspace}/f{i}", b"%d" % i)
        os.listdir(b.mount)
        files = [open(f"{b.mount}/f{i}", "r+b", buffering=0) for i in range(200)]
        chance = random.Random(4)
        n_unknown = 0
        for _ in range(8):
            made = [Later(os.mkdir, f"{b.mount}/d{i}") for i in range(4)]
            b.restart_sidecar()
            time.sleep(chance.uniform(0, 0.03))
            crash(b)
            n = n_unknown
            for x in made:
                try:
                    x.get()
                except OSError as e:
                    # It was being made when the sidecar was killed.
                    assert e.errno == errno.EIO, e
                    n_unknown += 1
            assert n_unknown <= n + 1
            for i in range(4):
                with contextlib.suppress(FileNotFoundError) if n_unknown > n else contextlib.nullcontext():
                    os.rmdir(f"{b.mount}/d{i}")
        wait_until(lambda: len(said(b, "unknown")) >= n_unknown, "what is unknown is named")
        for i, f in enumerate(files):
            assert f.read() == b"%d" % i
            f.close()


def test_a_mutation_that_was_begun_is_unknown(tmp):
    """It hangs in a file system of the workspace that does not answer, which takes root to put there."""
    if os.geteuid() != 0:
        return
    with mountbox.box(tmp) as inner, box(tmp) as b:
        os.mkdir(b.workspace + "/sub")
        subprocess.run(["mount", "--bind", inner.mount, b.workspace + "/sub"], check=True)
        try:
            os.listdir(b.mount + "/sub")
            inner.sidecar.send_signal(signal.SIGSTOP)
            made = Later(os.mkdir, b.mount + "/sub/begun")
            behind = Later(os.mkdir, b.mount + "/behind")
            wait_until(lambda: "request_wait_answer" in waits(b.sidecar.pid), "it hangs")
            os.kill(b.sidecar.pid, signal.SIGKILL)
            time.sleep(0.1)
            inner.sidecar.send_signal(signal.SIGCONT)
            b.sidecar.wait()
            b.start_sidecar()
            mount_ops.expect_errno(errno.EIO, made.get)
            behind.get()
            wait_until(lambda: any("mkdir sub/begun" in line for line in said(b, "unknown")), "it is named")
            # What there is shows at once.
            assert os.path.isdir(b.mount + "/sub/begun") == os.path.isdir(b.workspace + "/sub/begun")
            os.mkdir(b.mount + "/sub/after")
        finally:
            inner.sidecar.send_signal(signal.SIGCONT)
            subprocess.run(["umount", "-l", b.workspace + "/sub"], check=True)


def waits(pid):
    """Where in the kernel its threads are."""
    found = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/wchan", encoding="ascii") as f:
            found.add(f.read())
    return found


mountbox.main(globals())
