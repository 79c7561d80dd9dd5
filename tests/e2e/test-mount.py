# SPDX-License-Identifier: MIT
"""What a mount does, over a sidecar of its own at a fixed address: operations, barriers, ends."""

import contextlib
import fcntl
import mmap
import os
import signal
import subprocess
import sys
import time

import harness
import mount_ops
import mountbox
from mountbox import MOUNT, box, is_mounted, wait_until


def test_every_operation(tmp):
    with box(tmp) as b:
        assert mount_ops.Ops(b.mount, b.workspace, b.command).run() == 0


def test_every_operation_in_sync_mode(tmp):
    with box(tmp, "sync") as b:
        assert mount_ops.Ops(b.mount, b.workspace, b.command).run() == 0


def alternate(tmp, *options):
    """Without a wait: file, open descriptor, mapping, listing, absent name."""
    rounds = harness.how_many(25, 100, 1_000)
    with box(tmp, *options) as b:
        m = b.mount + "/"
        mount_ops.put(m + "map", bytes(4096))
        os.mkdir(m + "dir")
        held = os.open(m + "held", os.O_RDWR | os.O_CREAT)
        with open(m + "map", "r+b") as f, mmap.mmap(f.fileno(), 4096) as mapped:
            for i in range(rounds):
                mount_ops.put(m + "file", b"edit %d\n" % i)
                mapped[:8] = b"%08d" % i
                os.pwrite(held, b"h%06d" % i, 0)
                out = b.command("sh", "-c", "cat file; head -c 8 map; head -c 7 held; "
                                f"echo r{i} > back; echo > dir/n{i}; rm -f dir/n{i - 1}; "
                                f"printf X%06d {i} | dd of=held conv=notrunc bs=7 2>/dev/null; "
                                f"printf %0*d {1 + i % 50} 0 > length")
                assert out == b"edit %d\n%08dh%06d" % (i, i, i), (i, out)
                assert mount_ops.get(m + "back") == b"r%d\n" % i
                assert os.listdir(m + "dir") == ["n%d" % i]
                assert not os.path.exists(m + "dir/n%d" % (i - 1))
                assert os.stat(m + "length").st_size == 1 + i % 50
                assert len(mount_ops.get(m + "length")) == 1 + i % 50
                assert os.pread(held, 7, 0) == b"X%06d" % i
        os.close(held)


def test_edit_and_command_see_each_other(tmp):
    alternate(tmp)


def test_the_same_on_a_kernel_that_cannot_expire(tmp):
    alternate(tmp, "noexpire")


def test_what_is_left_behind_keeps_the_cache_off(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/seen", b"0")
        b.command("sh", "-c", "(while [ ! -e stop ]; do sleep 0.02; done; echo late > seen) "
                  ">/dev/null 2>&1 &")
        assert mount_ops.get(b.mount + "/seen") == b"0"
        mount_ops.put(b.mount + "/stop", b"")
        wait_until(lambda: mount_ops.get(b.mount + "/seen") == b"late\n", "the late change")


def test_files_that_a_new_program_does_not_get(tmp):
    """The kernel closes them in execve(2) and waits for us, and nobody may look at the process meanwhile."""
    script = ("import fcntl, os, sys\n"
              "f = open(sys.argv[1], 'wb', buffering=0)\n"
              "fcntl.lockf(f, fcntl.LOCK_EX)\n"
              "f.write(b'unsent')\n"
              "os.execv('/bin/true', ['true'])\n")
    with box(tmp) as b:
        for i in range(20):
            name = f"{b.mount}/{i}"
            assert subprocess.run([sys.executable, "-c", script, name], timeout=20, check=False).returncode == 0
            assert mount_ops.get(f"{b.workspace}/{i}") == b"unsent"
            with open(name, "rb+") as f:
                fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_killed_supervisor_takes_the_mount_along(tmp):
    with box(tmp) as b:
        pids = b.processes()
        mount_ops.put(b.mount + "/last", b"words")
        b.supervisor.kill()
        b.gone(*pids)
        assert mount_ops.get(b.workspace + "/last") == b"words"


def test_in_the_background_it_holds_nothing_of_its_caller(tmp):
    with box(tmp) as b:
        free = b.dir + "/free"
        os.mkdir(free)
        r = subprocess.run([MOUNT, "-o", b.options.replace("/ctl", "/ctl2"), "box", free],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True)
        assert r.stdout == b"" and r.stderr == b"", r
        mount_ops.put(free + "/x", b"x")
        subprocess.run([MOUNT, "-u", free], check=True)
        wait_until(lambda: not is_mounted(free), "unmount")
        assert mount_ops.get(b.workspace + "/x") == b"x"


def test_umount_drains_and_ends_all(tmp):
    with box(tmp) as b:
        pids = b.processes()
        mount_ops.put(b.mount + "/last", b"words")
        subprocess.run([MOUNT, "-u", b.mount], check=True)
        b.gone(*pids)
        assert mount_ops.get(b.workspace + "/last") == b"words"


def test_waiting_processes_can_be_killed(tmp):
    with box(tmp) as b:
        b.sidecar.send_signal(signal.SIGSTOP)
        for number in signal.SIGKILL, signal.SIGTERM, signal.SIGINT:
            p = subprocess.Popen(["stat", f"{b.mount}/absent{number}"])
            time.sleep(0.2)
            p.send_signal(number)
            assert p.wait(5) == -number
        # One that is caught does not end the call, and the kill that follows does.
        p = subprocess.Popen([sys.executable, "-c",
                              "import os,signal,sys\nsignal.signal(signal.SIGINT, lambda *a: None)\n"
                              "print('set', flush=True)\nos.stat(sys.argv[1])", b.mount + "/caught"],
                             stdout=subprocess.PIPE)
        assert p.stdout.readline() == b"set\n"
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert p.poll() is None
        p.kill()
        assert p.wait(5) == -signal.SIGKILL
        b.sidecar.send_signal(signal.SIGCONT)
        assert os.listdir(b.mount) == []


def test_another_sidecar_voids_what_was_open(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/a", b"1")
        os.mkdir(b.mount + "/d")
        fd = os.open(b.mount + "/a", os.O_RDWR)
        directory = os.open(b.mount + "/d", os.O_RDONLY)
        b.sidecar.kill()
        b.sidecar.wait()
        # Without it nobody knows what became of the session.
        os.unlink(b.dir + "/journal")
        b.start_sidecar()

        def reads():
            with contextlib.suppress(OSError):
                return mount_ops.get(b.mount + "/a") == b"1"
            return False
        wait_until(reads, "the new sidecar")
        for call in (lambda: os.fstat(fd), lambda: os.pwrite(fd, b"x", 0),
                     lambda: os.listdir(directory)):
            with contextlib.suppress(OSError):
                call()
                raise AssertionError("what was open still works")
        os.close(directory)
        with contextlib.suppress(OSError):
            os.close(fd)
        mount_ops.put(b.mount + "/d/new", b"2")
        assert mount_ops.get(b.workspace + "/d/new") == b"2"
        assert sorted(os.listdir(b.mount)) == ["a", "d"]
        b.command()


def test_a_link_that_stops_goes_on(tmp):
    with box(tmp) as b:
        mount_ops.put(b.mount + "/a", b"1")
        b.sidecar.send_signal(signal.SIGSTOP)
        time.sleep(4)
        b.sidecar.send_signal(signal.SIGCONT)
        assert mount_ops.get(b.mount + "/a") == b"1"
        mount_ops.put(b.mount + "/a", b"2")
        assert mount_ops.get(b.workspace + "/a") == b"2"


def fails(b, status, *words, options=None, target=None):
    r = subprocess.run([MOUNT, "-o", options or b.options, "box", target or b.mount],
                       capture_output=True, timeout=60, check=False)
    text = r.stderr.decode()
    assert r.returncode == status, (r.returncode, text)
    assert len(text.splitlines()) == 1 and text.startswith("rsb-mount: "), text
    assert all(w in text for w in words), text


def test_bad_mount_points_and_keys(tmp):
    with box(tmp) as b:
        fails(b, 1, "'box' is mounted at", b.mount, "already")
        fails(b, 1, "does not exist", target=b.dir + "/absent")
        fails(b, 1, "not a directory", target=b.key)
        fails(b, 1, "not empty", target=b.workspace + "/..")
        fails(b, 2, "nonsense", options="nonsense")
        free = b.dir + "/free"
        os.mkdir(free)
        with open(b.dir + "/wrong", "w", encoding="ascii") as f:
            f.write("00" * 32)
        fails(b, 1, "key", options=b.options.replace(b.key, b.dir + "/wrong"), target=free)
        fails(b, 1, "no link to", target=free,
              options=b.options.replace(f":{b.port}/", ":1/"))
        assert os.listdir(free) == [] and not is_mounted(free)


mountbox.main(globals())
