# SPDX-License-Identifier: MIT
"""The link of a mount breaks: what waits, for how long, and what goes on.

The path leads through the delay proxy. "cut": connections are reset and refused; "stalled": they stay, and not a
byte goes either way. Each step() is a case of its own.
"""

import contextlib
import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import time

import harness
from harness import check, equal, sidecars_of, wait_until

HOLD = 10.0  # RSB_HOLD_MAX_S
FORCED = 3.0 + 5.0  # RSB_BARRIER_FORCED_S, FORCED_NS of rsb down
KILLED = 0.2

# Calls go past Python, which repeats those that end with EINTR.
CALLER = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
for s in (signal.SIGURG, signal.SIGUSR1):
    signal.signal(s, lambda *a: None)
signal.signal(signal.SIGINT, signal.SIG_DFL)
path = os.fsencode(sys.argv[1])
buf = ctypes.create_string_buffer(65536)
fd = int(sys.argv[2])
def call(r):
    if r < 0:
        print(ctypes.get_errno(), time.monotonic(), flush=True)
        os._exit(1)
    return r
def list_fails(path):
    try:
        os.listdir(path)
    except OSError as e:
        ctypes.set_errno(e.errno)
        return True
print("ready", flush=True)
sys.stdin.read()
%s
print(0, time.monotonic(), flush=True)
"""
CALLS = {
    "stat": "call(libc.access(path + b'/cold', 0))",
    "read": "call(libc.pread(fd, buf, 4096, 0))",
    "write+close": "call(libc.write(fd, buf, 10)); call(libc.close(fd))",
    "mkdir": "call(libc.mkdir(path + b'/made', 0o755))",
    "flock": "call(libc.flock(fd, 2))",
    "chmod": "call(libc.chmod(path + b'/file', 0o600))",
    "fsync": "call(libc.write(fd, buf, 10)); call(libc.fsync(fd))",
    "create": "call(libc.open(path + b'/made', os.O_CREAT | os.O_WRONLY, 0o644))",
    "mkfifo": "call(libc.mkfifo(path + b'/made', 0o644))",
    "symlink": "call(libc.symlink(b'x', path + b'/made'))",
    "link": "call(libc.link(path + b'/file', path + b'/made'))",
    "unlink": "call(libc.unlink(path + b'/file'))",
    "rmdir": "call(libc.rmdir(path + b'/dir'))",
    "rename": "call(libc.rename(path + b'/file', path + b'/made'))",
    "readdir": "call(-1 if list_fails(path) else 0)",
}
OPENED = {"read": os.O_RDONLY, "write+close": os.O_WRONLY, "flock": os.O_RDWR, "fsync": os.O_WRONLY}
NAMES = ["create", "mkdir", "mkfifo", "symlink", "link", "unlink", "rmdir", "rename", "stat", "readdir"]


def step(name):
    print(f"     {name}", flush=True)


class Caller:
    """A process that makes one call below a directory of its own, with the file there open."""

    def __init__(self, box, what, directory):
        self.what, path = what, box.path(directory)
        fd = os.open(f"{path}/file", OPENED[what]) if what in OPENED else -1
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", CALLER % CALLS[what], path, str(fd)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, pass_fds=[fd] if fd >= 0 else [])
        if fd >= 0:
            os.close(fd)
        equal(self.process.stdout.readline(), b"ready\n", what)

    def go(self):
        self.start = time.monotonic()
        self.process.stdin.close()
        self.process.stdin = None
        return self

    def blocks(self):
        """It sleeps in the kernel, in the call."""
        def sleeps():
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as f:
                return f.read().rsplit(")", 1)[1].split()[0] in "SD"
        wait_until(sleeps, 10, f"{self.what} blocks")
        check(self.process.poll() is None, f"{self.what} does not block")

    def result(self, timeout):
        """errno (0 for success) and the seconds that it took."""
        out, _ = self.process.communicate(timeout=timeout)
        number, when = out.split()
        return int(number), float(when) - self.start

    def dies(self, *signals):
        """How long it takes after the last of the signals."""
        for s in signals[:-1]:
            self.process.send_signal(s)
            time.sleep(0.1)
        start = time.monotonic()
        self.process.send_signal(signals[-1])
        equal(self.process.wait(timeout=20), -signals[-1], f"{self.what} ends by the signal")
        self.process.stdout.close()
        return time.monotonic() - start


class Path:
    """A sandbox whose mount is reached through the proxy, with a directory for each name."""

    def __init__(self, world, box, proxy):
        self.world, self.box, self.proxy = world, box, proxy

    def tell(self, *commands):
        for c in commands:
            equal(self.proxy.command(c), "ok", c)

    def cut(self):
        self.tell("refuse on", "drop")
        self.wait_state("down")

    def mend(self):
        self.tell("stall off", "refuse off")
        self.wait_state("live")

    def state(self):
        return self.box.status()["link"]["state"]

    def wait_state(self, *states):
        wait_until(lambda: self.state() in states, 30, f"the link is {states}")

    def wait_cache(self):
        wait_until(lambda: self.box.status()["fs"]["cache_on"], 10, "nothing of a command lives")

    def directories(self, names):
        self.box.sh("; ".join(f"mkdir -p '{n}/dir'; echo old > '{n}/file'; echo x > '{n}/cold'" for n in names))
        # Looked up when that is kept, so that what blocks later is the call itself.
        self.wait_cache()
        for n in names:
            os.stat(self.box.path(n, "file"))
            os.stat(self.box.path(n, "dir"))
            check(not os.path.exists(self.box.path(n, "made")))


@contextlib.contextmanager
def path(world, *options):
    with world.sandbox() as box:
        server = world.local_server()
        world.rsb("umount", box.name)
        proxy = harness.DelayProxy(server["port"])
        try:
            world.rsb("mount", *options, box.name, box.mount,
                      env={"RSB_LOCAL_URL": f"http://127.0.0.1:{proxy.port}"})
            yield Path(world, box, proxy)
        finally:
            proxy.command("stall off")
            proxy.command("refuse off")
            world.rsb("umount", "-f", box.name, check_status=None)
            proxy.close()


def test_a_cut_link(world):
    waiting = {"chmod": "w1", "read": "w2", "fsync": "w3"}
    limit = 13.0
    with path(world, "-o", f"keeper.recover_wait={int(limit)}s") as p:
        box = p.box
        p.directories(NAMES + list(waiting.values()))
        box.write("known", b"k" * 3000)
        before = box.sh("find . | sort")
        p.wait_cache()
        for d in NAMES + list(waiting.values()):
            os.stat(box.path(d, "file"))
            os.stat(box.path(d, "dir"))
            check(not os.path.exists(box.path(d, "made")))
        equal(len(box.read("known")), 3000)
        os.listdir(box.path("w1"))
        names = [Caller(box, n, n) for n in NAMES]
        others = [Caller(box, what, d) for what, d in waiting.items()]
        new = [Caller(box, what, d) for what, d in (("mkdir", "mkdir"), ("chmod", "w1"), ("stat", "stat"))]
        start = time.monotonic()
        p.cut()
        for c in names + others:
            c.go()

        step("what is cached is read, and df answers")
        check(os.statvfs(box.mount).f_blocks > 0, "statvfs")
        equal(os.stat(box.path("known")).st_size, 3000, "stat")
        equal(len(box.read("known")), 3000, "read")
        check(time.monotonic() - start < HOLD - 2, "cached answers took long")

        step("a directory is held for at most 10 s, then EIO")
        for c in names:
            number, took = c.result(HOLD + 10)
            equal(number, errno.EIO, c.what)
            check(HOLD - 1.5 < took < HOLD + 1.5, f"{c.what} was held for {took:.1f} s")

        step("other calls wait for keeper.recover_wait, then fail together")
        ends = []
        for c in others:
            number, took = c.result(limit + 10)
            equal(number, errno.EIO, c.what)
            ends.append(c.start + took - start)
        check(max(ends) - min(ends) < 1, f"they ended at {ends}")
        check(limit - 2 < min(ends) < limit + 4, f"they ended at {ends}")

        step("new calls fail at once, what is cached goes on")
        for c in new:
            number, took = c.go().result(10)
            equal(number, errno.EIO, c.what)
            check(took < 2, f"{c.what} took {took:.1f} s")
        equal(len(box.read("known")), 3000, "read")
        check(os.statvfs(box.mount).f_blocks > 0, "statvfs")
        check("failing" in [e["kind"] for e in box.events()], "no event says so")

        step("what was withdrawn is never executed")
        # A listing is loaded for all who read it, and goes on.
        equal(box.status()["fs"]["withdrawn"], len(NAMES) - 1, "withdrawn")
        p.mend()
        wait_until(lambda: box.status()["state"] == "live", 20, "the keeper is live")
        equal(box.sh("find . | sort"), before)
        os.mkdir(box.path("mkdir/made"))
        equal(box.sh("ls mkdir"), "cold\ndir\nfile\nmade\n")

        step("umount works while the link is cut")
        p.cut()
        start = time.monotonic()
        world.run("umount", box.mount)
        check(time.monotonic() - start < 5, "umount took long")
        p.tell("refuse off")


def test_a_stalled_link(world):
    with path(world) as p:
        box = p.box
        p.directories(["mkdir", "unlink"])
        equal(p.state(), "live")
        made = Caller(box, "mkdir", "mkdir")
        gone = Caller(box, "unlink", "unlink")
        p.tell("stall on")
        made.go()
        gone.go()

        step("suspect after three silent intervals")
        p.wait_state("suspect")
        check(2 < time.monotonic() - made.start < 6, "when it became suspect")
        step("down, then resync: connected, and nothing comes back")
        p.wait_state("down", "resync")
        p.wait_state("resync")

        step("what was sent is unknown, and named in the event log")
        for c in (made, gone):
            number, took = c.result(HOLD + 10)
            equal(number, errno.EIO, c.what)
            check(took < HOLD + 1.5, f"{c.what} was held for {took:.1f} s")
        p.mend()
        wait_until(lambda: len([e for e in box.events() if e["kind"] == "unknown"]) == 2, 5, "events")
        text = " ".join(e["text"] for e in box.events() if e["kind"] == "unknown")
        check(re.search(r"\bmkdir mkdir/made:", text) and re.search(r"\bunlink unlink/file:", text), text)
        equal(box.status()["fs"]["unknown"], 2)

        step("the mount shows what became of it")
        equal(sorted(os.listdir(box.path("mkdir"))), box.sh("ls mkdir").split())
        equal(os.path.exists(box.path("mkdir/made")), "made" in box.sh("ls mkdir"))
        equal(os.path.exists(box.path("unlink/file")), "file" in box.sh("ls unlink").split())


def test_signals_while_the_link_is_cut(world):
    whats = ["stat", "read", "write+close", "mkdir", "flock"]
    with path(world) as p:
        box = p.box
        handled = {w: f"h{i}" for i, w in enumerate(whats)}
        ways = ([signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT], [signal.SIGURG, signal.SIGKILL])
        killed = [(w, f"k{i}{j}", way) for i, w in enumerate(whats) for j, way in enumerate(ways)]
        p.directories(list(handled.values()) + [d for _, d, _ in killed])
        callers = [Caller(box, w, d) for w, d in handled.items()]
        dying = [(Caller(box, w, d), way) for w, d, way in killed]
        base = []
        for _ in range(3):
            sleeper = subprocess.Popen(["sleep", "100"])
            start = time.monotonic()
            sleeper.kill()
            sleeper.wait()
            base.append(time.monotonic() - start)
        allowed = KILLED + max(base)
        p.cut()
        start = time.monotonic()

        step("a handled signal leaves the call alone")
        for c in callers:
            c.go().blocks()
            for s in (signal.SIGURG, signal.SIGUSR1, signal.SIGURG):
                c.process.send_signal(s)

        step("SIGKILL, SIGTERM and SIGINT end it at once, also after a handled one")
        for c, way in dying:
            c.go().blocks()
            took = c.dies(*way)
            check(took < allowed, f"{c.what} ended {took:.2f} s after {way}, allowed {allowed:.2f}")

        step("no call got EINTR")
        p.mend()
        # On a slow machine some of them were held for longer than a directory may be.
        too_long = time.monotonic() - start > HOLD
        for c in callers:
            r = c.result(20)[0]
            check(r == 0 or (too_long and r == errno.EIO and c.what in ("stat", "mkdir")), f"{c.what}: {r}")
        if not too_long:
            equal(box.sh("ls " + handled["mkdir"]), "cold\ndir\nfile\nmade\n")

        step("but who waits for the lock of another does")
        with open(box.path("h0", "file"), "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            c = Caller(box, "flock", "h0").go()
            c.blocks()
            wait_until(lambda: c.process.poll() is not None or c.process.send_signal(signal.SIGUSR1), 10, "EINTR")
            equal(c.result(1)[0], errno.EINTR, "flock")


def test_a_command_lives_on(world):
    with path(world, "-o", "keeper.recover_wait=2s") as p:
        box = p.box
        box.sh("(while [ ! -e go ]; do sleep 0.1; done; echo new > late) >/dev/null 2>&1 &")
        p.cut()
        wait_until(lambda: "failing" in [e["kind"] for e in box.events()], 10, "calls fail")
        p.mend()
        step("nothing is cached while it lives, although calls have failed")
        wait_until(lambda: box.status()["state"] == "live", 20, "the keeper is live")
        check(not os.path.exists(box.path("late")))
        box.write("go", b"")
        wait_until(lambda: os.path.exists(box.path("late")), 10, "what it made is seen")
        wait_until(lambda: box.status()["fs"]["cache_on"], 10, "it is known to be gone")


def test_up_of_what_is_cut_off(world):
    with path(world) as p:
        up = ["rsb", "up", "--name", p.box.name, "-m", p.box.mount, p.box.source]
        p.cut()
        wait_until(lambda: p.box.status()["state"] != "live", 10, "the daemon knows")
        step("it says so, and waits for the link")
        with subprocess.Popen(up, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
            said = waiting.stderr.readline()
            check(re.search(rb"has not been reached for \d+ s \(reconnecting\): waiting up to 60 s", said), said)
            check(waiting.poll() is None, "it does not wait")
            step("others need not wait for it")
            world.rsb("trust", p.box.name, check_status=None, timeout=8)
            p.mend()
            out, _ = waiting.communicate(timeout=30)
            check(b"is up already" in out, out)
            equal(waiting.returncode, 0)
        equal(p.box.status()["down_s"], 0)
        step("but not for ever")
        p.cut()
        wait_until(lambda: p.box.status()["state"] != "live", 10, "the daemon knows")
        r = world.rsb("up", "-q", "-o", "keeper.recover_wait=2s", *up[2:], check_status=125)
        check(re.fullmatch(rb"rsb up: .* is up, but its sandbox has not been reached for \d+ s .*\n", r.stderr), r.stderr)
        p.mend()


def test_the_sidecar_is_killed(world):
    with world.sandbox() as box:
        os.mkdir(box.path("dir"))
        with open(box.path("dir/log"), "ab", buffering=0) as log, open(box.path("lock"), "wb", buffering=0) as lock:
            log.write(b"one\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
            box.sh("sleep 1234 >/dev/null 2>&1 &")
            with subprocess.Popen(["rsb-exec", "sh", "-c", "echo began; exec sleep 100"], env=world.env, cwd=box.mount,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
                equal(run.stdout.readline(), b"began\n")
                for pid in harness.sidecars_of(world.local_server()["pid"]):
                    # Of one that is about to start a command there are two for a moment.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                os.mkdir(box.path("made"))
                step("the command is lost, and says so")
                _, err = run.communicate(timeout=30)
                equal(run.returncode, 125)
                check(re.fullmatch(rb"rsb-exec: lost: the command ended with the sidecar, [^\n]*\n", err), err)
            step("the keeper starts another one, and the mount goes on")
            log.write(b"two\n")
            os.fsync(log.fileno())
            r = box.exec("sh", "-c", "cat dir/log; ls -d made")
            equal(r.stdout, b"one\ntwo\nmade\n")
            step("the next command says what nobody else could, once")
            for line in (rb"lost: what the command sh -c sleep 1234 .* had left running ended with the sidecar",
                         rb"lost: lock was locked, and the lock was lost"):
                check(re.search(rb"^rsb-exec: note: " + line + rb"$", r.stderr, re.M), r.stderr)
            check(b"sleep 100" not in r.stderr, r.stderr)
            equal(box.exec("true").stderr, b"")
            told = [loss["text"] for loss in box.status()["losses"]]
            equal(len(told), 3, told)
            check("the command sh -c echo began; exec sleep 100 ended with the sidecar" in told, told)
            check(os.path.isdir(box.path("made")))
            step("who had a lock has it no more")
            with contextlib.suppress(OSError):
                lock.write(b"x")
                raise harness.Failed("a file that lost its lock can be written to")
            with contextlib.suppress(OSError):
                lock.close()
        step("of a command that was only asked for it is said what is known")
        for pid in harness.sidecars_of(world.local_server()["pid"]):
            os.kill(pid, signal.SIGSTOP)
        with subprocess.Popen(["rsb-exec", "touch", "asked"], env=world.env, cwd=box.mount,
                              stderr=subprocess.PIPE) as run:
            wait_until(lambda: box.status()["commands"], 10, "it is asked for")
            for pid in harness.sidecars_of(world.local_server()["pid"]):
                os.kill(pid, signal.SIGKILL)
            _, err = run.communicate(timeout=30)
            equal(run.returncode, 125)
            check(re.fullmatch(rb"rsb-exec: (lost: the sidecar was started again; whether the command had begun nobody "
                               rb"knows|fatal: the sidecar was started again, and the command did not begin)\n", err), err)
        check(not os.path.exists(box.path("asked")))
        step("and the event log has it")

        def said(kind, text):
            return any(e["kind"] == kind and text in e["text"] for e in box.events())
        for kind, text in ("restarted", ""), ("lost", "sleep 100"), ("lost", "lock"):
            wait_until(lambda k=kind, t=text: said(k, t), 10, f"{kind} {text}")
        check(not said("epoch", ""))


def test_the_server_is_killed(world):
    """Its sandboxes end with it, which no address of before can tell."""
    for comes_back in False, True:
        with world.sandbox() as box:
            box.write("file", b"x")
            port = world.local_server()["port"]
            os.kill(world.local_server()["pid"], signal.SIGKILL)
            if comes_back:
                world.rsb("create", "other")
                check(world.local_server()["port"] != port, "it has another port")
            step(f"the mount says so, {'also to another server' if comes_back else 'with no server there'}")
            wait_until(lambda: box.status()["state"] == "lost", 20, "lost")
            check([e["text"] for e in box.events() if e["kind"] == "lost"], "no event says so")
            step("and calls fail at once")
            number, took = Caller(box, "stat", ".").go().result(5)
            equal(number, errno.EIO)
            check(took < 1, f"it took {took:.1f} s")
            if comes_back:
                world.rsb("destroy", "other")


def test_down_by_force(world):
    with path(world) as p:
        box = p.box
        box.write("file", b"x" * 1000)
        p.tell("stall on")
        p.wait_state("suspect", "down", "resync")
        step("rsb down --force does not wait for a sandbox that is not reached")
        start = time.monotonic()
        r = world.rsb("down", "--kill", "--force", box.name, check_status=None,
                      env={"RSB_LOCAL_URL": f"http://127.0.0.1:{p.proxy.port}"})
        took = time.monotonic() - start
        check(took < FORCED + 4, f"it took {took:.1f} s")
        check(not os.path.ismount(box.mount), "it is mounted")
        equal(r.returncode, 125, r.stderr)


harness.main(globals())
