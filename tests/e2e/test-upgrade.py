# SPDX-License-Identifier: MIT
"""
A running mount is handed to another rsb-mount: a copy of the program at another path. What programs have open goes
on; a program that cannot go on leaves the mount to that of before.
"""

import contextlib
import fcntl
import mmap
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import mount_ops
import mountbox
from mountbox import BUILD, MOUNT, box, is_alive, is_mounted, wait_until

ANSWER_S = 20  # of a loaded machine
BAD = f"{BUILD}/tests/e2e/bad-mount"
LAYOUT = re.compile(rb"\d\dpambsr")  # RSB_SHARED_MAGIC, whatever its number


def copy_of(b, name, change=lambda program: program, what=MOUNT):
    """Another build of rsb-mount."""
    path = f"{b.dir}/{name}/rsb-mount"
    os.mkdir(os.path.dirname(path))
    with open(what, "rb") as f:
        program = f.read()
    with open(path, "wb") as f:
        f.write(change(program))
    os.chmod(path, 0o755)
    return path


def upgrade(b, program, *options):
    return subprocess.run([program, "--upgrade", *options, "-o", f"socket={b.socket}", "box"],
                          capture_output=True, text=True, timeout=60, check=False)


def succeed(b, program, *options):
    r = upgrade(b, program, *options)
    assert r.returncode == 0, r.stderr
    wait_until(lambda: programs(b) == [program] * 3, f"{program} everywhere, not {programs(b)}")


def refuse(b, program, *words):
    """With one sentence, and the mount goes on."""
    r = upgrade(b, program)
    assert r.returncode == 1, r
    assert r.stderr.count("\n") == 1 and r.stderr.startswith("rsb-mount: "), r.stderr
    assert all(word in r.stderr for word in words), r.stderr


def programs(b):
    """Of supervisor, daemon and notifier."""
    with contextlib.suppress(FileNotFoundError, KeyError):
        return [os.readlink(f"/proc/{pid}/exe") for pid in (b.supervisor.pid, *b.processes())]
    return []


class Worker(threading.Thread):
    """Does fn(i) again and again until stop(); what went wrong, and the longest time that one took."""

    def __init__(self, fn):
        super().__init__(daemon=True)
        self.fn = fn
        self.n = 0
        self.longest = 0
        self.error = None
        self.ended = threading.Event()
        self.start()

    def run(self):
        try:
            while not self.ended.is_set():
                begin = time.monotonic()
                self.fn(self.n)
                self.longest = max(self.longest, time.monotonic() - begin)
                self.n += 1
        except (OSError, AssertionError) as e:
            self.error = e

    def stop(self):
        self.ended.set()
        self.join(ANSWER_S)
        assert not self.is_alive(), "no answer"
        if self.error:
            raise self.error


def once(fn, *args):
    result = []
    thread = threading.Thread(target=lambda: result.append(fn(*args)), daemon=True)
    thread.start()
    return thread, result


def test_what_is_open_goes_on(tmp):
    with box(tmp) as b:
        m = b.mount + "/"
        os.mkdir(m + "dir")
        names = {f"name{i:04d}" for i in range(2000)}
        os.mkdir(b.workspace + "/many")
        for name in names:
            mount_ops.put(f"{b.workspace}/many/{name}", b"")
        mount_ops.put(m + "map", bytes(8192))
        new = copy_of(b, "new")
        with contextlib.ExitStack() as stack:
            gone = stack.enter_context(open(m + "gone", "w+b", buffering=0))
            gone.write(b"unsent")
            os.unlink(m + "gone")
            lock = stack.enter_context(open(m + "lock", "wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            mapped = stack.enter_context(open(m + "map", "r+b"))
            pages = stack.enter_context(mmap.mmap(mapped.fileno(), 8192))
            pages[5000:5005] = b"dirty"
            listing = stack.enter_context(os.scandir(m + "many"))
            seen = [next(listing).name for _ in range(300)]
            inside = stack.enter_context(subprocess.Popen(
                ["sh", "-c", "read x; echo here > made; pwd"], cwd=m + "dir", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE))
            waiter, _ = once(lambda: fcntl.flock(stack.enter_context(open(m + "lock", "rb")), fcntl.LOCK_EX))
            log = os.open(m + "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            workers = [Worker(lambda i: os.write(log, b"%07d\n" % i)),
                       Worker(lambda i: mount_ops.put(f"{m}dir/{i % 50}", b"%d" % i)),
                       Worker(lambda _: [mount_ops.get(m + "map"), os.stat(m + "dir"), os.listdir(m + "dir")])]
            time.sleep(0.2)
            pid = b.supervisor.pid
            for program in (new, MOUNT, new):
                before = b.processes()
                succeed(b, program)
                assert b.supervisor.poll() is None and not set(b.processes()) & set(before)
            for worker in workers:
                worker.stop()
            os.close(log)
            print("     ", [(w.n, round(w.longest, 2)) for w in workers], flush=True)
            assert b.supervisor.pid == pid and waiter.is_alive(), "the lock is held"
            assert mount_ops.get(b.workspace + "/log") == b"".join(b"%07d\n" % i for i in range(workers[0].n))
            assert os.pread(gone.fileno(), 10, 0) == b"unsent"
            assert inside.communicate(b"\n", ANSWER_S)[0].strip() == os.fsencode(m + "dir")
            assert os.path.exists(b.workspace + "/dir/made")
            seen += [entry.name for entry in listing]
            assert len(seen) == len(set(seen)) and set(seen) == names
            fcntl.flock(lock, fcntl.LOCK_UN)
            waiter.join(ANSWER_S)
            assert not waiter.is_alive(), "the lock came"
            pages.flush()
            assert mount_ops.get(b.workspace + "/map")[5000:5005] == b"dirty"
        assert b.command("cat", "dir/made") == b"here\n"


def test_calls_under_way(tmp):
    with box(tmp) as b:
        new = copy_of(b, "new")
        mount_ops.put(b.workspace + "/unseen", b"content")
        b.sidecar.send_signal(signal.SIGSTOP)
        try:
            made, _ = once(os.mkdir, b.mount + "/made")
            read, content = once(mount_ops.get, b.mount + "/unseen")
            time.sleep(0.1)
            succeed(b, new)
            assert made.is_alive() and read.is_alive()
        finally:
            b.sidecar.send_signal(signal.SIGCONT)
        made.join(ANSWER_S)
        read.join(ANSWER_S)
        assert content == [b"content"] and os.listdir(b.workspace) != ["unseen"]


def test_the_new_one_is_killed_and_ended(tmp):
    with box(tmp) as b:
        succeed(b, copy_of(b, "new"))
        daemon, notifier = b.processes()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: len(programs(b)) == 3 and b.processes()[0] != daemon, "another one")
        assert len(set(programs(b))) == 1, "of the new program too"
        mount_ops.put(b.mount + "/file", b"content")
        daemon, notifier = b.processes()
        os.kill(notifier, signal.SIGKILL)
        wait_until(lambda: len(programs(b)) == 3 and b.processes()[1] != notifier, "another one")
        b.remount()
        assert mount_ops.get(b.mount + "/file") == b"content"


def test_a_mount_in_the_background(tmp):
    """Its supervisor has no terminal, and its log in a file."""
    with box(tmp) as b:
        b.unmount()
        subprocess.run([MOUNT, "-o", b.options, "box", os.path.relpath(b.mount)], check=True, timeout=60)
        new = copy_of(b, "new")
        with open(b.mount + "/open", "wb") as f:
            r = upgrade(b, new)
            assert r.returncode == 0, r.stderr
            f.write(b"content")
        assert mount_ops.get(b.workspace + "/open") == b"content"
        pids = [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if runs(p, new)]
        subprocess.run([new, "-u", b.mount], check=True, timeout=60)
        wait_until(lambda: not any(map(is_alive, pids)), "processes end")
        b.start()


def runs(pid, program):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe") == program
    return False


def test_another_layout(tmp):
    def change(program):
        changed, n = LAYOUT.subn(b"77pambsr", program)
        assert n
        return changed

    with box(tmp) as b:
        before = b.processes(), programs(b)
        with open(b.mount + "/open", "wb") as f:
            refuse(b, copy_of(b, "other", change), "another way", "goes on as it is")
            assert (b.processes(), programs(b)) == before
            f.write(b"x")
        assert mount_ops.get(b.workspace + "/open") == b"x"


def test_programs_that_cannot_go_on(tmp):
    """They ask, and fail when it is their turn."""
    def refuses(program):
        assert program.count(b"\0--take-over=\0") == 1
        return program.replace(b"\0--take-over=\0", b"\0--Take-over=\0")

    with box(tmp) as b:
        before = programs(b)
        with open(b.mount + "/open", "wb") as f:
            f.write(b"un")
            f.flush()
            for program in (copy_of(b, "refuses", refuses), copy_of(b, "crashes", what=BAD), copy_of(b, "hangs", what=BAD)):
                refuse(b, program, "cannot go on", "the one before")
                assert programs(b) == before
            f.write(b"sent")
        assert mount_ops.get(b.workspace + "/open") == b"unsent"
        succeed(b, copy_of(b, "good"))


def test_wrong_files(tmp):
    with box(tmp) as b:
        before = b.processes(), programs(b)
        for content in (b"", b"\x7fELF", b"#!/bin/false\n"):
            path = copy_of(b, "wrong", lambda _, content=content: content)
            with contextlib.suppress(OSError):
                assert upgrade(b, path).returncode != 0
            shutil.rmtree(os.path.dirname(path))
        assert (b.processes(), programs(b)) == before
        assert b.command("echo", "here") == b"here\n"


def test_commands_are_not_lost(tmp):
    with box(tmp) as b:
        new = copy_of(b, "new")
        with subprocess.Popen([f"{BUILD}/tests/e2e/run-there", b.socket, "sh", "-c", "echo $$ > pid; exec sleep 1000"],
                              stderr=subprocess.PIPE) as run:
            wait_until(lambda: os.path.exists(b.workspace + "/pid") and mount_ops.get(b.workspace + "/pid"), "it runs")
            refuse(b, new, "commands run", "--force")
            assert run.poll() is None and set(programs(b)) == {MOUNT}
            succeed(b, new, "--force")
            assert run.wait(ANSWER_S) != 0
        pid = int(mount_ops.get(b.workspace + "/pid"))
        wait_until(lambda: not is_alive(pid), "the end of the command")
        assert b.command("echo", "again") == b"again\n"


def test_a_mount_that_ends_meanwhile(tmp):
    with box(tmp) as b:
        new = copy_of(b, "new")
        pids = b.processes()
        fd = os.open(b.mount + "/file", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"unsent")
        asking, _ = once(upgrade, b, new)
        b.supervisor.terminate()
        b.gone(*pids)
        asking.join(60)
        assert not is_mounted(b.mount)
        assert mount_ops.get(b.workspace + "/file") == b"unsent"
        with contextlib.suppress(OSError):
            os.close(fd)
        refuse(b, new, "is not mounted")
        b.start()


def test_a_kernel_that_cannot(tmp):
    with box(tmp, "noepoch") as b:
        refuse(b, copy_of(b, "new"), "6.16")


mountbox.main(globals())
