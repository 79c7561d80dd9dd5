# SPDX-License-Identifier: MIT
"""Random work on a mount and by commands, while the link is cut and stalled and the daemon is killed.

Each worker has a directory of its own and knows what must be in it. At the end nothing is lost and nothing was done
twice, and neither daemon nor sidecar has grown. RSB_SEED=N chooses another course of events.
"""

import contextlib
import os
import random
import re
import signal
import threading
import time
import traceback

import harness
from harness import check, equal, wait_until

SECONDS = harness.how_many(20, 120, 1200)
SEED = int(os.environ.get("RSB_SEED", "1"))
PATIENCE = 2  # seconds: with what one disturbance takes less than RSB_HOLD_MAX_S
GROWTH = 32 << 20  # of memory in use, over what caches may hold


class Files:
    """Work on the mount: what was closed is there, what was appended is there once."""

    def __init__(self, soak, n):
        self.random = random.Random(f"{SEED} files {n}")
        self.root = soak.box.path(f"files{n}")
        self.known = {}
        self.log = []
        os.mkdir(self.root)

    def path(self, name):
        return os.path.join(self.root, name)

    def name(self):
        return f"f{self.random.randrange(30)}"

    def write(self, path, data):
        with open(path, "wb") as f:
            f.write(data)

    def do_write(self):
        name = self.name()
        data = self.random.randbytes(self.random.choice((0, 10, 3000, 200000)))
        if self.random.random() < 0.5:
            self.write(self.path(name), data)
        else:
            self.write(self.path("new"), data)
            os.rename(self.path("new"), self.path(name))
        self.known[name] = data

    def do_patch(self):
        if self.known:
            name = self.random.choice(sorted(self.known))
            data, at = self.random.randbytes(100), self.random.randrange(5000)
            with open(self.path(name), "r+b") as f:
                f.seek(at)
                f.write(data)
            old = self.known[name].ljust(at, b"\0")
            self.known[name] = old[:at] + data + old[at + 100:]

    def do_append(self):
        line = b"%d\n" % len(self.log)
        fd = os.open(self.path("log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        try:
            equal(os.write(fd, line), len(line))
        finally:
            os.close(fd)
        self.log.append(line)

    def do_read(self):
        if self.known:
            name = self.random.choice(sorted(self.known))
            with open(self.path(name), "rb") as f:
                check(f.read() == self.known[name], f"{self.path(name)} is not what was written")

    def do_move(self):
        if self.known:
            name, to = self.random.choice(sorted(self.known)), self.name()
            os.rename(self.path(name), self.path(to))
            self.known[to] = self.known.pop(name)

    def do_remove(self):
        if self.known:
            name = self.random.choice(sorted(self.known))
            os.unlink(self.path(name))
            del self.known[name]

    def do_directory(self):
        os.mkdir(self.path("dir"))
        os.link(self.path("log"), self.path("dir/log")) if self.log else None
        equal(os.listdir(self.path("dir")), ["log"] if self.log else [])
        if self.log:
            os.unlink(self.path("dir/log"))
        os.rmdir(self.path("dir"))

    def do_list(self):
        equal(sorted(os.listdir(self.root)), sorted([*self.known, *(["log"] if self.log else [])]), self.root)

    def step(self):
        getattr(self, self.random.choice([n for n in dir(self) if n.startswith("do_")]))()

    def check(self):
        self.do_list()
        for name, data in self.known.items():
            with open(self.path(name), "rb") as f:
                check(f.read() == data, self.path(name))
        if self.log:
            with open(self.path("log"), "rb") as f:
                equal(f.read(), b"".join(self.log))


class Commands:
    """Each is executed once, and its output comes whole; of one that was lost with the daemon, at most once."""

    def __init__(self, soak, n):
        self.soak, self.log = soak, f"log{n}"
        self.sure, self.unsure = [], set()
        self.n = 0

    def step(self):
        self.n += 1
        kills = self.soak.n_kill  # odd while one is under way
        r = self.soak.box.exec("sh", "-c", f"echo {self.n} >> {self.log}; seq 2000; echo end", check_status=None, timeout=60)
        if r.returncode == 125 and (self.soak.n_kill != kills or kills % 2) and b"lost: " in r.stderr:
            self.unsure.add(self.n)
            return
        equal(r.returncode, 0, r.stderr)
        equal(r.stdout, b"".join(b"%d\n" % i for i in range(1, 2001)) + b"end\n")
        self.sure.append(self.n)

    def check(self):
        got = [int(line) for line in self.soak.box.sh(f"cat {self.log}").split()]
        equal([n for n in got if n not in self.unsure], self.sure, self.log)
        equal(len(set(got)), len(got), "once")


class Soak:
    def __init__(self, world, box, proxy):
        self.world, self.box, self.proxy = world, box, proxy
        self.random = random.Random(f"{SEED} chaos")
        self.n_kill = 0
        self.stop = threading.Event()
        self.failures = []
        self.workers = [Files(self, n) for n in range(3)] + [Commands(self, n) for n in range(2)]

    def work(self, worker):
        try:
            while not self.stop.is_set():
                worker.step()
        except Exception as e:  # told by the main thread
            traceback.print_exc()
            self.failures.append(e)
            self.stop.set()

    def do_cut(self):
        equal(self.proxy.command("drop"), "ok")

    def do_refuse(self):
        self.proxy.command("refuse on")
        self.proxy.command("drop")
        self.stop.wait(self.random.uniform(0.1, 3))
        self.proxy.command("refuse off")

    def do_stall(self):
        self.proxy.command("stall on")
        self.stop.wait(self.random.uniform(0.1, 5))
        self.proxy.command("stall off")

    def do_cut_within(self):
        self.proxy.command(f"{self.random.choice(('cut-before', 'cut-after'))} {self.random.randrange(1, 50)}")

    def do_kill(self):
        pid = self.box.status()["pid"]
        self.n_kill += 1
        os.kill(pid, signal.SIGKILL)
        self.n_kill += 1

    def usage(self):
        """Resident memory and descriptors of both ends."""
        there = self.box.sh("for p in /proc/[0-9]*; do case $(readlink $p/exe) in *rsb-sidecar*) "
                            "grep VmRSS $p/status; ls $p/fd | wc -l;; esac; done 2>/dev/null | head -2").split()
        pid = self.box.status()["pid"]
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            rss = re.search(r"VmRSS:\s+(\d+) kB", f.read())
        usage = {"daemon": int(rss.group(1)) << 10, "daemon fds": len(os.listdir(f"/proc/{pid}/fd"))}
        if len(there) == 4:  # a sidecar that runs as another user cannot be asked
            usage |= {"sidecar": int(there[1]) << 10, "sidecar fds": int(there[3])}
        return usage

    def is_live(self):
        return self.box.status()["link"]["state"] == "live"

    def chaos(self, seconds):
        """One disturbance may meet another one's recovery, but not for so long that calls in a directory may fail."""
        ways = [getattr(self, n) for n in sorted(dir(self)) if n.startswith("do_")]
        end = time.monotonic() + seconds
        live = time.monotonic()
        while time.monotonic() < end and not self.stop.wait(self.random.uniform(0.5, 3)):
            if self.is_live() or time.monotonic() - live > PATIENCE:
                wait_until(self.is_live, 30, "the link is live")
                live = time.monotonic()
            self.random.choice(ways)()

    def run(self, seconds):
        threads = [threading.Thread(target=self.work, args=(w,)) for w in self.workers]
        for t in threads:
            t.start()
        try:
            self.chaos(seconds)
        finally:
            self.proxy.command("stall off")
            self.proxy.command("refuse off")
            self.proxy.command("cut-before 0")
            self.stop.set()
            for t in threads:
                t.join(120)
        check(not self.failures, self.failures)
        check(not any(t.is_alive() for t in threads), "a worker hangs")
        wait_until(self.is_live, 30, "the link is live")
        for worker in self.workers:
            worker.check()
        self.stop.clear()


def test_nothing_is_lost_and_nothing_doubled(world):
    with harness.far_mount(world, mount=("-o", "crashes=1000")) as (box, proxy):
        soak = Soak(world, box, proxy)
        soak.run(SECONDS / 4)
        before = soak.usage()
        soak.run(SECONDS * 3 / 4)
        after = soak.usage()
        print(f"     seed {SEED}: {sum(len(w.log) for w in soak.workers[:3])} appends, "
              f"{sum(w.n for w in soak.workers[3:])} commands, {soak.n_kill // 2} kills; {before} then {after}", flush=True)
        for what, n in before.items():
            if world.sanitized and "fds" not in what:
                continue  # it keeps what was freed, in a quarantine
            limit = n + (20 if "fds" in what else GROWTH)
            check(after[what] <= limit, f"{what} grew from {n} to {after[what]}")
        kinds = {e["kind"] for e in box.events()}
        check(not kinds & {"unknown", "epoch", "lost"}, kinds)


harness.main(globals())
