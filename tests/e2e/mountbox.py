# SPDX-License-Identifier: MIT
"""A sidecar and a mount of it at a fixed address, without keeper and sandbox: for tests of the mount itself."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import guard
import sanitizer
from guard import is_alive

ANSWER_S = 20  # of a loaded machine; a daemon is back in some 0.1 s

BUILD = os.environ["RSB_TEST_BUILD"]
SKIP = 77
MOUNT = os.environ.get("RSB_TEST_BIN", f"{BUILD}/fuse") + "/rsb-mount"


def wait_until(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out: " + what
        time.sleep(0.01)


def is_mounted(path):
    with open("/proc/self/mounts", "rb") as f:
        return any(line.split()[1] == os.fsencode(path) for line in f)


def children(pid):
    """name -> pid of the children."""
    found = {}
    for child in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{child}/stat", "rb") as f:
                head, tail = f.read().rsplit(b")", 1)
            if int(tail.split()[1]) == pid:
                found[head.split(b"(", 1)[1].decode()] = int(child)
    return found


class Box:
    """A sidecar and a mount of it, as the user who runs the tests."""

    sidecar_program = f"{BUILD}/sidecar/rsb-sidecar"

    def __init__(self, tmp, *options):
        self.dir = tempfile.mkdtemp(dir=tmp)
        self.workspace = self.dir + "/ws"
        self.mount = self.dir + "/mnt"
        os.mkdir(self.workspace)
        os.mkdir(self.mount)
        key = os.urandom(32)
        self.key = self.dir + "/key"
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
            f.write(key.hex() + "\n")
        self.port = 0
        self.sidecar = None
        self.start_sidecar()
        self.socket = self.dir + "/ctl"
        self.log = self.dir + "/log"
        self.options = ",".join(
            (f"url=ws://127.0.0.1:{self.port}/rsb,key={self.key},socket={self.socket}",) + options)
        self.supervisor = None
        try:
            self.start()
        except BaseException:
            if self.supervisor:
                self.supervisor.terminate()
                self.supervisor.wait(30)
            self.end_sidecar()
            raise

    def start_sidecar(self):
        r, w = os.pipe()
        with open(self.key, encoding="ascii") as f:
            os.write(w, bytes.fromhex(f.read()))
        os.close(w)
        user = pwd.getpwuid(os.getuid()).pw_name
        self.sidecar = self.spawn(
            [self.sidecar_program, "--port", str(self.port), "--listen", "127.0.0.1",
             "--journal", self.dir + "/journal", "--no-cgroup", "--workspace", self.workspace,
             "--user", user, "--key-fd", str(r)], r)
        os.close(r)
        self.port = int(self.sidecar.stdout.readline().split()[1])

    def spawn(self, argv, fd):
        return subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=[fd])

    def start(self):
        with open(self.log, "ab") as log:
            self.supervisor = subprocess.Popen(
                [MOUNT, "-f", "-o", self.options, "box", self.mount], stdout=log, stderr=log)
        wait_until(lambda: is_mounted(self.mount) or self.supervisor.poll() is not None, "mount")
        assert is_mounted(self.mount), self.text()
        # A crash is survived from the moment on that the daemon answers here.
        wait_until(self.answers, "the daemon answers")

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def processes(self):
        named = children(self.supervisor.pid)
        return named["rsb-mount"], named["rsb-notify"]

    def command(self, *argv):
        """Runs a command over there through the daemon's control socket."""
        return subprocess.run([f"{BUILD}/tests/e2e/run-there", self.socket, *(argv or ("true",))],
                              check=True, capture_output=True, timeout=60).stdout

    def answers(self):
        try:
            self.command()
        except subprocess.CalledProcessError:
            return False
        return True

    def unmount(self):
        """Not by umount(8): a copy of the mount in another namespace would keep the daemon."""
        pids = self.processes()
        self.supervisor.terminate()
        self.gone(*pids)

    def remount(self):
        self.unmount()
        self.start()

    def gone(self, *pids):
        wait_until(lambda: not is_mounted(self.mount), "unmount")
        self.supervisor.wait(30)
        wait_until(lambda: not any(map(is_alive, pids)), "processes end")
        assert os.listdir(self.mount) == []

    def close(self):
        pids = children(self.supervisor.pid).values() if self.supervisor.poll() is None else ()
        # A test that failed may have left it stopped, and then nothing drains.
        self.sidecar.send_signal(signal.SIGCONT)
        self.supervisor.terminate()
        self.gone(*pids)
        assert self.end_sidecar() == 0

    def end_sidecar(self):
        self.sidecar.terminate()
        return self.sidecar.wait()


@contextlib.contextmanager
def box(tmp, *options, kind=Box):
    b = kind(tmp, *options)
    try:
        yield b
    except BaseException:
        print(b.text())
        raise
    finally:
        b.close()


class Later:
    """Does fn on a thread of its own; its result or error when it is asked for."""

    def __init__(self, fn, *args):
        self.result = None
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(fn, *args), daemon=True)
        self.thread.start()

    def run(self, fn, *args):
        try:
            self.result = fn(*args)
        except OSError as e:
            self.error = e

    def done(self):
        return not self.thread.is_alive()

    def get(self):
        self.thread.join(ANSWER_S)
        assert self.done(), "no answer"
        if self.error:
            raise self.error
        return self.result


def crash(b):
    """Kills the daemon and waits until another one is there."""
    daemon = b.processes()[0]
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: children(b.supervisor.pid).get("rsb-mount", daemon) != daemon, "a new daemon")
    return daemon


def run_all(names):
    failed = 0
    # What a failed test leaves mounted is not to hide its failure; guard takes it away.
    with tempfile.TemporaryDirectory(prefix="rsb-box.", ignore_cleanup_errors=True) as tmp:
        for name, test in [(n, f) for n, f in names.items() if n.startswith("test_")]:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            start = time.monotonic()
            try:
                test(os.path.realpath(tmp))
                said = sanitizer.reports()
                assert not said, "\n".join(said)
            except Exception as e:  # the others are to run as well
                failed += 1
                traceback.print_exc()
                print(f"FAIL {name}: {e!r}", flush=True)
            else:
                print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0


def run(tests):
    """Ends with what tests() returns."""
    if not os.path.exists("/dev/fuse"):
        print("skipped: no /dev/fuse")
        sys.exit(SKIP)
    guard.run(tests)


def main(names):
    """Runs the functions test_*, or those that the command line names, each with a directory to be in."""
    run(lambda: run_all(names))
