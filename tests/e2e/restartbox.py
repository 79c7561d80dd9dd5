# SPDX-License-Identifier: MIT
"""A box whose sidecar can be killed and replaced while this process has files of its mount open."""

import os
import signal
import socket
import subprocess
import sys

import mountbox
from mountbox import ANSWER_S, wait_until


# A child of this process would close its copies of what is open on the mount before it executes
# anything, and wait for the very sidecar that it is to start.
STARTER = """
import os, socket, subprocess, sys
sock = socket.socket(fileno=int(sys.argv[1]))
while True:
    data, fds, _, _ = socket.recv_fds(sock, 65536, 2)
    if not data:
        break
    out, key = fds
    argv = data.decode().split(chr(0))
    argv[-1] = str(key)
    with subprocess.Popen(argv, stdout=out, pass_fds=[key]) as p:
        os.close(out)
        os.close(key)
        sock.send(b"%d" % p.pid)
        code = p.wait()
    sock.send(b"%d" % code)
"""


class Process:
    """What a box does with its sidecar, of one that the starter waits for."""

    def __init__(self, sock, argv, key):
        r, w = os.pipe()
        socket.send_fds(sock, ["\0".join(argv).encode()], [w, key])
        os.close(w)
        self.sock = sock
        self.pid = int(sock.recv(100))
        self.stdout = os.fdopen(r, "rb")
        self.code = None

    def send_signal(self, number):
        if self.code is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def wait(self):
        if self.code is None:
            self.code = int(self.sock.recv(100))
            self.stdout.close()
        return self.code


class RestartBox(mountbox.Box):
    def __init__(self, tmp, *options):
        self.sock, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.starter = subprocess.Popen([sys.executable, "-c", STARTER, str(there.fileno())],
                                        pass_fds=[there.fileno()])
        there.close()
        super().__init__(tmp, *options)

    def spawn(self, argv, fd):
        return Process(self.sock, argv, fd)

    def restart_sidecar(self):
        """Kills it; another process takes its place, with the same port, workspace and journal."""
        self.sidecar.send_signal(signal.SIGKILL)
        self.sidecar.wait()
        self.start_sidecar()

    def end_sidecar(self):
        code = super().end_sidecar()
        self.sock.close()
        self.starter.wait(ANSWER_S)
        return code


def box(tmp, *options):
    return mountbox.box(tmp, *options, kind=RestartBox)


def said(b, kind):
    return [line for line in b.text().splitlines() if f" {kind}: " in line]


def went_on(b, n):
    """It has done so n times."""
    wait_until(lambda: len(said(b, "restarted")) >= n, "the session goes on")
