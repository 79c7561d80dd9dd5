# SPDX-License-Identifier: MIT
"""
The memory of the sidecar is forked, or goes back to what it was, as a virtual machine's may. No copy answers for what
another one did: a host that finds a memory that it does not know begins anew, and says what was lost.
"""

import contextlib
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading

import mountbox
import sanitizer
from mountbox import BUILD, wait_until

FORGETS = "do not fit together"  # said by a memory that is not what a host knew


class Switch:
    """The address that the host knows: leads to one of the copies, and turned to another one."""

    def __init__(self, port):
        self.target = port
        self.socks = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                here = self.listener.accept()[0]
                try:
                    there = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    here.close()
                    continue
                self.socks |= {here, there}
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self.cut({source, sink})

    def cut(self, socks):
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def turn(self, port):
        self.target = port
        socks, self.socks = self.socks, set()
        self.cut(socks)

    def close(self):
        self.cut({self.listener} | self.socks)
        self.listener.close()


class Copy:
    def __init__(self, pid, port):
        self.pid, self.port = pid, port

    def stat(self):
        with open(f"/proc/{self.pid}/stat", "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0]

    def go_on(self):
        wait_until(lambda: self.stat() == b"T", "it is stopped")
        os.kill(self.pid, signal.SIGCONT)


class CopyBox(mountbox.Box):
    sidecar_program = f"{BUILD}/tests/e2e/copied-sidecar"

    def start_sidecar(self):
        self.copies = []
        super().start_sidecar()
        self.first = Copy(self.sidecar.pid, self.port)
        self.switch = Switch(self.port)
        self.port = self.switch.port

    def spawn(self, argv, fd):
        self.said = self.dir + "/said"
        with open(self.said, "wb") as said:
            return subprocess.Popen([*argv, "-v"], stdout=subprocess.PIPE, stderr=said, pass_fds=[fd])

    def copy(self):
        """Of this moment; it sleeps."""
        os.kill(self.sidecar.pid, signal.SIGUSR1)
        word, pid, port = self.sidecar.stdout.readline().split()
        assert word == b"copy"
        self.copies.append(Copy(int(pid), int(port)))
        return self.copies[-1]

    def turn_to(self, copy):
        """What is called meanwhile may have been sent, and then nobody knows: the tests call nothing."""
        self.switch.turn(copy.port)
        wait_until(self.answers, "another connection")

    def forgotten(self):
        with open(self.said, encoding="utf-8") as f:
            return f.read().count(FORGETS)

    def end_sidecar(self):
        self.switch.close()
        for copy in self.copies:
            with contextlib.suppress(ProcessLookupError):  # it crashed, which the test has seen
                os.kill(copy.pid, signal.SIGKILL)
        super().end_sidecar()
        return 0


def box(tmp):
    return mountbox.box(tmp, kind=CopyBox)


class Work:
    """What a session has over there."""

    def __init__(self, b, name):
        self.path = f"{b.mount}/{name}"
        self.file = os.open(self.path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        os.write(self.file, b"before")
        os.fsync(self.file)

    def becomes(self, want):
        try:
            os.pwrite(self.file, b"after ", 0)
            os.fsync(self.file)
            got = "goes on"
        except OSError as e:
            got = errno.errorcode[e.errno]
        assert got == want, (got, want)
        with contextlib.suppress(OSError):
            os.close(self.file)


def works(b, name):
    """Once, and on the disk that all of them have."""
    os.mkdir(f"{b.mount}/{name}")
    assert os.path.isdir(f"{b.workspace}/{name}")
    assert b.command("echo", name) == name.encode() + b"\n"


def test_a_copy_of_this_very_moment_goes_on(tmp):
    """A machine that was saved and went on elsewhere: nothing has happened in between, and nothing is lost."""
    with box(tmp) as b:
        work = Work(b, "file")
        copy = b.copy()
        os.kill(b.sidecar.pid, signal.SIGKILL)
        copy.go_on()
        b.turn_to(copy)
        works(b, "dir")
        work.becomes("goes on")
        assert b.forgotten() == 0


def test_an_older_copy_is_known_for_one(tmp):
    with box(tmp) as b:
        work = Work(b, "file")
        copy = b.copy()
        works(b, "later")
        os.kill(b.sidecar.pid, signal.SIGKILL)
        copy.go_on()
        b.turn_to(copy)
        works(b, "dir")
        work.becomes("EIO")
        assert b.forgotten() == 1
        assert sorted(os.listdir(b.mount)) == ["dir", "file", "later"]


def test_who_went_on_meanwhile_is_the_newer_one(tmp):
    """It is the copy that went on with the session; then the one of before is the older one."""
    with box(tmp) as b:
        work = Work(b, "file")
        copy = b.copy()
        copy.go_on()
        b.turn_to(copy)
        os.mkdir(f"{b.mount}/there")
        work.becomes("goes on")
        assert b.forgotten() == 0
        again = Work(b, "again")
        b.turn_to(b.first)
        works(b, "here")
        again.becomes("EIO")
        assert b.forgotten() == 1


def test_an_older_copy_and_another_process_of_the_host(tmp):
    """Which knows of the session by its counts of mutations alone."""
    with box(tmp) as b:
        work = Work(b, "file")
        copy = b.copy()
        works(b, "later")
        os.kill(b.sidecar.pid, signal.SIGKILL)
        mountbox.crash(b)
        copy.go_on()
        b.turn_to(copy)
        works(b, "dir")
        work.becomes("EIO")
        assert b.forgotten() == 1


def test_two_live_copies_do_not_answer_for_each_other(tmp):
    with box(tmp) as b:
        copy = b.copy()
        copy.go_on()
        sides = (copy, b.first)
        for i in range(6):
            work = Work(b, f"file{i}")
            b.turn_to(sides[i % 2])
            works(b, f"dir{i}")
            # The session that was made over there is not known here, or not as it is now.
            work.becomes("EIO")
        assert sorted(os.listdir(b.workspace)) == sorted(f"{what}{i}" for what in ("dir", "file") for i in range(6))


if sanitizer.is_in(CopyBox.sidecar_program):
    print("skipped: a sanitizer does not bear the copy of a process with threads")
    sys.exit(mountbox.SKIP)
mountbox.main(globals())
