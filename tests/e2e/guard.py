# SPDX-License-Identifier: MIT
"""
Tests that are stopped tear down what they made. meson sends SIGTERM to the whole process group and SIGKILL half a
second later: so the tests run in a session of their own, and learn of the end of the process that meson knows.
Temporary directories lie in one, and processes have its name in their environment, so that a test which was not
prepared to be stopped leaves nothing either. One that waits in a call on a mount which nobody answers learns of nothing:
what serves the mount is ended then, and with it the call.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import sanitizer

PR_SET_PDEATHSIG = 1
PATIENCE_S = 20
STOP_AGAIN_S = 15
STUCK_S = 60
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """Passes every "except Exception" on its way to the tear-down."""


def stop(number, _):
    for s in SIGNALS:
        signal.signal(s, lambda *_: None)  # once is enough; not ignored, which children would inherit
    # Raised in a destructor it is lost.
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(0 if number == signal.SIGALRM else STOP_AGAIN_S)
    raise Stopped(signal.Signals(number).name)


def mounts_below(path):
    with open("/proc/self/mounts", "rb") as f:
        points = [line.split()[1].decode(errors="surrogateescape") for line in f]
    return [p for p in points if p == path or p.startswith(path + "/")]


def processes_of(marker):
    """Processes that carry marker in their environment: whatever our programs started on this side."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if marker.encode() in f.read() and int(pid) != os.getpid():
                    with open(f"/proc/{pid}/cmdline", "rb") as c:
                        found.append((int(pid), c.read().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            continue
    return found


def is_alive(pid):
    """Zombies count as ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_of_session():
    """What a test forked itself has the environment that this process was started with: no marker in it."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(ProcessLookupError):
            if pid != os.getpid() and os.getsid(pid) == os.getpid() and is_alive(pid):
                found.append(pid)
    return found


def left_behind(directory):
    """What does not go by itself, and then is made to: processes would hold the pipe that meson reads."""
    end = time.monotonic() + PATIENCE_S
    while left := processes_of(directory) + processes_of_session() + mounts_below(directory):
        if time.monotonic() > end:
            sweep(directory)
            break
        time.sleep(0.05)
    return left


def sweep(directory):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = processes_of_session() + [pid for pid, _ in processes_of(directory)]
        if not left:
            break
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for mount in sorted(mounts_below(directory), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)


def is_pending(signals):
    """Sent to this process, and no handler has run."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as f:
        pending = next(int(line.split()[1], 16) for line in f if line.startswith("ShdPnd:"))
    return any(pending >> (s - 1) & 1 for s in signals)


def sweep_when_stuck(directory, parent):
    """FUSE lets a signal with a handler wait as long as the call does. In a thread: it is the main one that waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # else it would take what stops the main one
    since = time.monotonic()
    while True:
        time.sleep(0.1)
        if os.getppid() == parent and not is_pending((*SIGNALS, signal.SIGALRM)):
            since = time.monotonic()
        elif time.monotonic() > since + STUCK_S:
            sweep(directory)
            since = time.monotonic()


def run_in(directory, tests):
    tempfile.tempdir = directory
    with sanitizer.watched(directory):
        try:
            status = tests()
        except BaseException:
            signal.alarm(0)
            sweep(directory)
            raise
        found = [f"left behind: {process}" for process in left_behind(directory)] + sanitizer.reports()
    for report in found:
        print(f"FAIL {report}", flush=True)
    return status or int(bool(found))


def run_child(tests, parent):
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # nohup(1) would have it ignored by all that the tests start.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for s in SIGNALS:
        signal.signal(s, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    if os.getppid() != parent:
        stop(signal.SIGTERM, None)
    with tempfile.TemporaryDirectory(prefix="rsb-test.", dir="/tmp", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o1777)
        threading.Thread(target=sweep_when_stuck, args=(directory, parent), daemon=True).start()
        return run_in(directory, tests)


def run(tests):
    """Ends with what tests() returns; 1 if it was stopped or a sanitizer had something to say."""
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        try:
            sys.exit(run_child(tests, parent))
        except Stopped as e:
            print(f"stopped by {e}", flush=True)
            sys.exit(1)
    for s in SIGNALS:
        signal.signal(s, lambda number, _: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(code if code >= 0 else 1)
