# SPDX-License-Identifier: MIT
"""
The harness itself: a file of tests that is stopped leaves no mount, no process and no directory, and what a sanitizer
says about any process makes its test fail.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

import guard
import harness
from harness import check, wait_until

FILE = """
import os
import subprocess
import time
import harness

def test_hangs(world):
    with world.sandbox() as box:
        held = open(box.path("held"), "wb")
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "echo begun; exec sleep 1000"], cwd=box.mount, env=world.env,
                             stdout=subprocess.PIPE)
        p.stdout.readline()
        forked = os.fork()
        if forked == 0:
            time.sleep(1000)
        print("tmp", world.tmp, forked, flush=True)
        p.communicate()

harness.main(globals())
"""

STUCK = """
import os
import signal
import sys
import guard
import harness

guard.STUCK_S = float(sys.argv.pop())

def test_waits_in_a_call(world):
    with world.sandbox(up=("-o", "keeper.recover_wait=1h")) as box:
        fd = os.open(box.path("file"), os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"text")
        os.kill(harness.sidecars_of(world.local_server()["pid"])[0], signal.SIGSTOP)
        print("tmp", world.tmp, os.getpid(), flush=True)
        os.fsync(fd)

harness.main(globals())
"""
STUCK_S = 3

CRASHES = """
import os
import signal
import time
import harness

def pids(words):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if words in f.read():
                    yield int(pid)
        except OSError:
            pass

def ancestors(pid):
    while pid > 1:
        yield pid
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            pid = int(f.read().rsplit(")", 1)[1].split()[1])

def crash(world, words):
    with world.sandbox() as box:
        box.sh("true")
        server = world.local_server()["pid"]
        os.kill(next(p for p in pids(words) if server in ancestors(p)), signal.SIGSEGV)
        time.sleep(2)

def test_sidecar(world):
    crash(world, b"/rsb-sidecar-")

def test_process_1(world):
    crash(world, b"--init")

def test_monitor(world):
    crash(world, b"--boot")

def test_daemon(world):
    with world.sandbox() as box:
        os.kill(box.status()["pid"], signal.SIGSEGV)
        time.sleep(2)

harness.main(globals())
"""


def is_there(tmp):
    return [tmp for _ in range(os.path.exists(tmp))] + harness.mounts_below(tmp) + harness.processes_of(tmp)


def start(world, text, err, *args):
    name = os.path.join(world.fresh(), "test.py")
    with open(name, "w", encoding="ascii") as f:
        f.write(text)
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(harness.__file__))}
    return subprocess.Popen([sys.executable, "-B", name, *args], env=env, stdout=subprocess.PIPE, stderr=err,
                            start_new_session=True)


def end(p, number):
    """Its status. What was raised in a finalizer Python swallows: then Ctrl-C is pressed once more."""
    for _ in range(3):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return p.wait(20)
        if number == signal.SIGINT:
            os.killpg(p.pid, number)
    return p.wait(20)


def stopped_by(world, number):
    with tempfile.TemporaryFile() as err:
        p = start(world, FILE, err)
        _, tmp, forked = p.stdout.readline().decode().split()
        check(harness.mounts_below(tmp) and harness.processes_of(tmp), "it does not hang as it should")
        # As meson does at a timeout.
        os.killpg(p.pid, number)
        time.sleep(0.5)
        if number == signal.SIGTERM:
            os.killpg(p.pid, signal.SIGKILL)
        check(end(p, number) != 0, "it passed")
        p.stdout.close()
        # Process 1 may take its time to reap it.
        wait_until(lambda: not is_there(tmp) and not guard.is_alive(int(forked)), 60, "the tear-down")


def test_stopped_by_a_timeout(world):
    stopped_by(world, signal.SIGTERM)


def test_stopped_by_hand(world):
    stopped_by(world, signal.SIGINT)


def test_killed(world):
    stopped_by(world, signal.SIGKILL)


def waits_for_fuse(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
        return f.read() == "request_wait_answer"


def test_stopped_in_a_call_that_nobody_answers(world):
    for number in (signal.SIGTERM, signal.SIGKILL):
        with tempfile.TemporaryFile() as err:
            p = start(world, STUCK, err, str(STUCK_S))
            _, tmp, pid = p.stdout.readline().decode().split()
            wait_until(lambda pid=pid: waits_for_fuse(pid), 20, "the call")
            os.kill(p.pid, number)
            wait_until(lambda tmp=tmp: not is_there(tmp), STUCK_S + 40, f"the tear-down after {number.name}")
            check(p.wait(20) != 0, "it passed")
            p.stdout.close()


def test_reports_of_every_process_are_seen(world):
    if not world.sanitized:
        return
    out = start(world, CRASHES, subprocess.DEVNULL).communicate(timeout=240)[0].decode()
    check("0 passed, 4 failed" in out, out)
    for words in ("FAIL test_sidecar: /tmp/rsb-sanitizer.", "FAIL test_process_1: rsb-envd: process 1",
                  "FAIL test_monitor: AddressSanitizer:", "FAIL test_daemon: report."):
        check(words in out, f"{words}\n{out}")


harness.main(globals())
