# SPDX-License-Identifier: MIT
"""What breaks between a program and its sandbox, and what the program sees of it.

For each way: an open file with data that was not sent, a file with a lock, a command under way and a call that is made
meanwhile; how long it took, and what is told. The path leads through the delay proxy.
"""

import contextlib
import datetime
import errno
import fcntl
import functools
import json
import multiprocessing
import os
import signal
import struct
import subprocess
import time

import guard
import harness
from harness import check, equal, wait_until

LOST = {"unknown", "epoch", "lost", "failing"}  # kinds of events that tell of a loss


class Work:
    """Under way while something breaks."""

    def __init__(self, box):
        self.box = box
        self.command = subprocess.Popen(["rsb-exec", "sh", "-c", "echo ready; read line; echo got $line"], cwd=box.mount,
                                        env=box.world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        equal(self.command.stdout.readline(), b"ready\n")
        self.file = open(box.path("file"), "wb", buffering=0)
        self.lock = open(box.path("lock"), "wb", buffering=0)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.file.write(b"before ")

    def finish(self):
        """What became of each, in a word."""
        return {"file": self.finish_file(), "lock": self.finish_lock(), "command": self.finish_command()}

    def finish_file(self):
        try:
            self.file.write(b"after")
            os.fsync(self.file.fileno())
        except OSError as e:
            return errno.errorcode[e.errno]
        finally:
            with contextlib.suppress(OSError):
                self.file.close()
        equal(self.box.sh("cat file"), "before after")
        return "whole"

    def finish_lock(self):
        try:
            self.lock.write(b"x")
            os.fsync(self.lock.fileno())
            return "held" if self.box.exec("flock", "-n", "lock", "true", check_status=None).returncode == 1 else "free"
        except OSError as e:
            return errno.errorcode[e.errno]
        finally:
            with contextlib.suppress(OSError):
                self.lock.close()

    def finish_command(self):
        out, err = self.command.communicate(b"this\n", timeout=60)
        if self.command.returncode == 0:
            equal((out, err), (b"got this\n", b""))
            return "goes on"
        equal(self.command.returncode, 125)
        check(err.startswith(b"rsb-exec: lost: "), err)
        return "lost"


@contextlib.contextmanager
def at_work(box):
    """In a process of its own: who starts a program closes the files that it has open, and so waits for the sandbox."""
    ours, theirs = multiprocessing.Pipe()

    def run():
        work = Work(box)
        theirs.send("ready")
        theirs.recv()
        theirs.send(work.finish())

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    theirs.close()
    try:
        equal(ours.recv(), "ready")
        yield ours
        process.join(30)
        equal(process.exitcode, 0)
    finally:
        process.kill()
        process.join()


def ask(box):
    """A call that needs the sandbox: how it ends, and after how long."""
    start = time.monotonic()
    try:
        os.stat(box.path("absent"))
        check(False, "it is absent")
    except OSError as e:
        return errno.errorcode[e.errno], time.monotonic() - start


@contextlib.contextmanager
def direct(world, *options):
    """The same without a proxy, for what finds its host by itself."""
    with world.sandbox(up=options) as box:
        yield box, None


def breaks(world, how, want, told=(), options=(), way=harness.far_mount):
    with way(world, *options) as (box, proxy):
        with at_work(box) as work:
            call = how(box, proxy) or ask(box)
            if want["call"] == "ENOENT":
                wait_until(lambda: box.status()["state"] == "live", 30, "it is live")
            work.send("finish")
            seen = work.recv() | {"call": call[0]}
        print(f"     {seen}, the call took {call[1]:.2f} s", flush=True)
        equal(seen, want)
        wait_until(lambda: set(told) <= {e["kind"] for e in box.events()}, 10, f"{told} is told")
        kinds = {e["kind"] for e in box.events()}
        check(not (kinds - set(told)) & LOST, kinds)


NOTHING = {"file": "whole", "lock": "held", "command": "goes on", "call": "ENOENT"}
SIDECAR = {"file": "whole", "lock": "EIO", "command": "lost", "call": "ENOENT"}
GONE = {"file": "EIO", "lock": "EIO", "command": "lost", "call": "EIO"}


def test_cut_and_return(world):
    breaks(world, lambda box, proxy: proxy.command("drop") and None, NOTHING)


def test_cut_for_a_while(world):
    def cut(_, proxy):
        proxy.command("refuse on")
        proxy.command("drop")
        time.sleep(2)
        proxy.command("refuse off")
    breaks(world, cut, NOTHING)


def test_half_open(world):
    """Nothing comes, and nobody says so; then it is given up, and another one is there."""
    def stall(box, proxy):
        proxy.command("stall on")
        wait_until(lambda: box.status()["state"] != "live", 60, "it is noticed")
        proxy.command("stall off")
    breaks(world, stall, NOTHING)


def test_sidecar_killed(world):
    def kill(_box, _proxy):
        for pid in harness.sidecars_of(world.local_server()["pid"]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    breaks(world, kill, SIDECAR, told=("restarting", "restarted", "lost"))


def test_sidecar_stopped_and_continued(world):
    def stop(_box, _proxy):
        pids = harness.sidecars_of(world.local_server()["pid"])
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    breaks(world, stop, NOTHING)


def test_paused(world):
    def pause(box, _):
        world.api("POST", f"/sandboxes/{box.status()['sandbox']}/pause")
    breaks(world, pause, NOTHING, told=("resuming",))


def test_paused_at_its_end(world):
    """Nobody prolonged its life: this machine slept."""
    def sleep(box, _):
        status = box.status()
        os.kill(status["pid"], signal.SIGSTOP)
        try:
            wait_until(lambda: json.loads(world.api("GET", f"/sandboxes/{status['sandbox']}"))["state"] == "paused", 30, "it is paused")
        finally:
            os.kill(status["pid"], signal.SIGCONT)
    breaks(world, sleep, NOTHING, told=("resuming",), options=("-o", "sandbox.ttl=15s"))


def test_deleted(world):
    def delete(box, _):
        world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
        wait_until(lambda: box.status()["state"] == "lost", 30, "it is known")
    breaks(world, delete, GONE, told=("lost",))


def test_deleted_with_a_snapshot(world):
    """Another one is made of it: what was there later is lost, which is said, and so is every open file."""
    with harness.far_mount(world) as (box, proxy):
        box.write("kept", b"before")
        world.rsb("snapshot", box.name)
        box.write("later", b"after")
        first = box.status()["sandbox"]
        with at_work(box) as work:
            unsent = os.open(box.path("unsent"), os.O_CREAT | os.O_WRONLY)
            proxy.command("stall on")
            os.write(unsent, b"x")
            world.api("DELETE", f"/sandboxes/{first}")
            proxy.command("stall off")
            call, took = ask(box)
            work.send("finish")
            seen = work.recv()
            try:
                os.close(unsent)
            except OSError as e:
                seen["unsent"] = errno.errorcode[e.errno]
        print(f"     {seen}, the call took {took:.2f} s", flush=True)
        equal((seen, call), ({"file": "EIO", "lock": "EIO", "command": "lost", "unsent": "EIO"}, "ENOENT"))
        equal(sorted(os.listdir(box.mount)), ["kept"])
        equal(box.read("kept"), b"before")
        # The next command says so, once.
        r = box.exec("sh", "-c", "cat kept; echo new > made")
        equal(r.stdout, b"before")
        check(b"1 file or directory is back as it was at " in r.stderr, r.stderr)
        check(any(loss["text"].startswith("unsent ") for loss in box.status()["losses"]), box.status())
        equal(box.exec("true").stderr, b"")
        equal(box.read("made"), b"new\n")
        status = box.status()
        check(status["sandbox"] != first and status["state"] == "live", status)
        wait_until(lambda: "restored" in (e["kind"] for e in box.events()), 10, "it is told")
        kinds = [e["kind"] for e in box.events()]
        equal((kinds.count("recreating"), kinds.count("restored")), (1, 1))
        # The next daemon and the next snapshot are of that one.
        os.kill(status["pid"], signal.SIGKILL)
        wait_until(lambda: box.status()["pid"] != status["pid"], 20, "another daemon")
        equal(box.read("made"), b"new\n")
        world.rsb("snapshot", box.name)
        world.rsb("umount", box.name)
        world.rsb("mount", box.name, box.mount)
        equal(box.read("made"), b"new\n")
        equal(box.status()["sandbox"], status["sandbox"])


def kill_host(world):
    """It ends with all its sandboxes, which are in memory."""
    server = world.local_server()["pid"]
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not guard.is_alive(server), 10, "rsb-local is gone")


def test_host_killed(world):
    """Nothing is left to go on with: all of it fails, at once, and says why."""
    def kill(box, _):
        kill_host(world)
        wait_until(lambda: box.status()["state"] == "lost", 30, "it is known")
        call = ask(box)
        check(call[1] < 1, call)
        harness.sentence(box.exec("true", check_status=125), "rsb-exec: fatal:", "is gone or refuses us", f"rsb destroy {box.name}")
        return call
    breaks(world, kill, GONE, told=("lost",), way=direct)


def test_host_killed_with_a_snapshot(world):
    """Whoever notices it starts another one, and another sandbox there."""
    with world.sandbox() as box:
        box.write("kept", b"before")
        world.rsb("snapshot", box.name)
        first = box.status()["sandbox"]
        server = world.local_server()["pid"]
        with at_work(box) as work:
            kill_host(world)
            call, took = ask(box)
            work.send("finish")
            seen = work.recv()
        print(f"     {seen}, the call took {took:.2f} s", flush=True)
        equal((seen, call), ({"file": "EIO", "lock": "EIO", "command": "lost"}, "ENOENT"))
        check(took < 30, took)
        check(world.local_server()["pid"] != server, "another rsb-local")
        equal(box.read("kept"), b"before")
        check(b"1 file or directory is back as it was at " in box.exec("true").stderr, "the next command says so")
        equal(box.exec("true").stderr, b"")
        check(box.status()["sandbox"] != first, "another sandbox")
        wait_until(lambda: {"recreating", "restored"} <= {e["kind"] for e in box.events()}, 10, "it is told")


def test_daemon_killed(world):
    """The lock and what was not sent are in the mapping; a command ends with the socket of its client."""
    def kill(box, _):
        os.kill(box.status()["pid"], signal.SIGKILL)
    breaks(world, kill, NOTHING | {"command": "lost"})


def test_round_trip_and_clock_are_told(world):
    """Both clocks are this machine's. What came late is no sign of a clock that is behind."""
    with harness.far_mount(world, rtt_ms=1000) as (box, _):
        wait_until(lambda: box.status()["link"]["rtt_us"], 10, "a ping was answered")
        status = box.status()
        check(1000000 <= status["link"]["rtt_us"] < 3000000, status["link"])
        check(abs(status["skew_us"]) < 350000, status["skew_us"])
        text = world.rsb("status", box.name).stdout.decode()
        check(all(f"{key}: " in text for key in ("skew_us", "  rtt_us")), text)


def shifted_clock(world):
    """The environment of a program whose wall clock is set, and what sets it: by how many seconds it is ahead."""
    path = os.path.join(world.fresh("clock"), "ahead")

    def ahead(seconds):
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644), "wb") as f:
            f.write(struct.pack("=q", seconds * 10**9))

    ahead(0)
    return {"LD_PRELOAD": f"{os.environ['RSB_TEST_BUILD']}/tests/e2e/clockshift.so", "RSB_TEST_CLOCK": path}, ahead


def test_our_clock_is_set(world):
    """Nothing is waited for by the clock on the wall, and nobody is taken for gone by it."""
    if world.sanitized:
        print("skipped: a sanitizer must be the first that is loaded")
        return
    env, ahead = shifted_clock(world)

    def jump(box, _):
        for seconds in (3600, -3600):
            ahead(seconds)
            equal(ask(box)[0], "ENOENT")
            off = box.status()["skew_us"] / 10**6 + seconds
            check(abs(off) < 10, off)
        equal(box.status()["link"]["reconnects"], 0)
    breaks(world, jump, NOTHING, way=functools.partial(harness.far_mount, env=env))


def test_the_hosts_clock_is_set(world):
    """How long a sandbox lives goes by the difference of two times of its host's."""
    if world.sanitized:
        print("skipped: a sanitizer must be the first that is loaded")
        return
    env, ahead = shifted_clock(world)
    with world.own_server(env=env), direct(world, "-o", "sandbox.ttl=15s", "-o", "keeper.heartbeat=1s") as (box, _):
        sandbox = box.status()["sandbox"]
        end = lambda: json.loads(world.api("GET", f"/sandboxes/{sandbox}"))["endAt"]
        with at_work(box) as work:
            for seconds in (3600, -3600):
                ahead(seconds)
                for _ in range(3):
                    first = end()
                    wait_until(lambda last=first: end() != last, 10, "its life goes on")
                off = datetime.datetime.fromisoformat(end()).timestamp() - time.time() - seconds
                check(abs(off) < 60, off)
            work.send("finish")
            equal(work.recv() | {"call": ask(box)[0]}, NOTHING)
        kinds = {e["kind"] for e in box.events()}
        check(not kinds & (LOST | {"resuming", "limit", "renewing"}), kinds)
        equal(box.status()["sandbox"], sandbox)


def test_all_of_this_machine_sleeps(world):
    """As a virtual machine that is suspended: time goes on for everybody, and nobody counts it against the others."""
    def sleep(box, _):
        pids = [pid for pid, _ in guard.processes_of(world.env["XDG_STATE_HOME"])] + harness.below(world.local_server()["pid"])
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(8)  # longer than a connection may be silent
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        call = ask(box)
        equal(box.status()["link"]["reconnects"], 0)
        return call
    breaks(world, sleep, NOTHING, way=direct)


# The six that the plugins before had with a real sandbox, under their names.

def test_E1_outlives_its_first_timeout(world):
    with world.sandbox(up=("-o", "sandbox.ttl=15s", "-o", "keeper.heartbeat=1s")) as box:
        box.write("file", b"x")
        first = json.loads(world.api("GET", f"/sandboxes/{box.status()['sandbox']}"))["endAt"]
        wait_until(lambda: json.loads(world.api("GET", f"/sandboxes/{box.status()['sandbox']}"))["endAt"] > first, 10, "it is prolonged")
        equal(box.read("file"), b"x")


def test_E2_paused_under_the_client(world):
    with world.sandbox() as box:
        sandbox = box.status()["sandbox"]
        box.write("file", b"x")
        world.api("POST", f"/sandboxes/{sandbox}/pause")
        equal(box.sh("cat file"), "x")
        equal(box.status()["sandbox"], sandbox)


def test_E3_killed(world):
    """The next call has another sandbox, with what the host kept, and the next command has the notice."""
    source = world.fresh("src")
    with open(f"{source}/seed", "w", encoding="ascii") as f:
        f.write("seed")
    with world.sandbox(source, up=("-o", "sync.interval=1s")) as box:
        sandbox = box.status()["sandbox"]
        box.write("made", b"x")
        # One that is taken by itself.
        wait_until(lambda: json.loads(world.rsb("snapshot", "list", "--json", box.name).stdout)["snapshots"], 30, "a snapshot")
        world.api("DELETE", f"/sandboxes/{sandbox}")
        call, took = ask(box)
        equal(call, "ENOENT")
        check(took < 30, took)
        equal((box.read("seed"), box.read("made")), (b"seed", b"x"))
        r = box.exec("cat", "seed")
        equal(r.stdout, b"seed")
        check(b"files and directories are back as they were at " in r.stderr, r.stderr)
        check(box.status()["sandbox"] != sandbox, "another sandbox")


def test_E4_five_hundred_files(world):
    with world.sandbox() as box:
        for i in range(500):
            box.write(f"f{i}", b"needle" if i == 321 else b"hay" * 1000)
        equal(box.sh("grep -rl needle ."), "./f321\n")
        equal(subprocess.run(["grep", "-rl", "needle", "."], cwd=box.mount, capture_output=True, check=True).stdout, b"./f321\n")


def test_E5_in_and_out(world):
    source = world.fresh("src")
    os.mkdir(f"{source}/node_modules")
    for name in ("node_modules/dep", "main"):
        with open(f"{source}/{name}", "w", encoding="ascii") as f:
            f.write(name)
    with world.sandbox(source) as box:
        equal(box.sh("ls"), "main\n")
        box.sh("echo made > made")
        world.rsb("sync", "out", box.name)
        equal(sorted(os.listdir(source)), ["made", "main", "node_modules"])


def test_E6_custom_syncs(world):
    source, seen = world.fresh("src"), world.fresh("seen")
    options = [f"sync.{way}_command=echo $RSB_SYNC_DIRECTION $RSB_SANDBOX $RSB_DIR >> {seen}/calls; {what}"
               for way, what in (("in", "rsb-exec -q touch brought"), ("out", 'rsb-exec -q ls > "$RSB_DIR/there"'))]
    with world.sandbox(source, up=("-o", options[0])) as box:
        equal(os.listdir(box.mount), ["brought"])
        world.rsb("down", "--kill", "-o", options[1], box.name)
        with open(f"{seen}/calls", encoding="ascii") as f:
            equal(f.read().split("\n"), [f"in {box.name} {source}", f"out {box.name} {source}", ""])
        with open(f"{source}/there", encoding="ascii") as f:
            equal(f.read(), "brought\n")


harness.main(globals())
