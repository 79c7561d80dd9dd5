# SPDX-License-Identifier: MIT
"""Syncs that somebody ends, or that would never end by themselves."""

import array
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

import harness
from harness import check, equal, sentence

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def project(world):
    source = world.fresh("src")
    pathlib.Path(source, "file").write_text("old", encoding="utf-8")
    with world.sandbox(source) as box:
        yield box


def names(box):
    return sorted(os.listdir(box.source))


@contextlib.contextmanager
def begun(world, box, *verb):
    """A verb that syncs out a file of holes, which is long to hash: it has come, whatever of it was looked at."""
    staged = pathlib.Path(box.source, ".rsb", f"sync-{box.name}", "big")
    with subprocess.Popen(["rsb", *verb, box.name], env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as p:
        try:
            harness.wait_until(lambda: p.poll() is not None or (staged.exists() and staged.stat().st_size == 12 << 30), 60,
                               "it is staged")
            equal(p.poll(), None, "it goes on")
            yield p
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)


def test_an_interrupt_ends_it_at_once(world):
    with project(world) as box:
        box.sh("truncate -s 12G big; echo -n new > file")
        for number in NUMBERS:
            for kill in (os.kill, os.killpg):  # by kill(1), and by a terminal
                with begun(world, box, "sync", "out") as p:
                    kill(p.pid, number)
                    out, err = p.communicate(timeout=20)
                equal((p.returncode, out, err), (-number, b"", b"rsb sync: interrupted; nothing is changed\n"))
                equal(names(box), ["file"], "the stage is gone")
        with begun(world, box, "down") as p:
            p.terminate()
            out, err = p.communicate(timeout=20)
        equal((p.returncode, out, err), (-signal.SIGTERM, b"", b"rsb down: interrupted; nothing is changed\n"))
        equal((names(box), box.read("file")), (["file"], b"new"), "it is up as it was")
        world.rsb("down", "--no-sync", box.name)
        with begun(world, box, "sync", "out") as p:
            p.terminate()
            err = p.communicate(timeout=20)[1].decode()
        equal(err, f"rsb sync: interrupted; nothing is changed\nrsb sync: {box.name} was paused, and is running now\n")


def test_what_one_left_that_was_killed_goes(world):
    with project(world) as box:
        box.sh("truncate -s 12G big")
        for kill in (os.kill, os.killpg):
            for verb in ("sync", "status"), ("sync", "in"), ("down", "--no-sync", "--leave"):
                with begun(world, box, "sync", "out") as p:
                    # What is used is not swept, of whatever sandbox, nor what is somebody's own.
                    own = pathlib.Path(box.source, ".rsb", "sync-mine")
                    own.mkdir(mode=0o755)
                    kill(p.pid, signal.SIGKILL)
                    p.wait(timeout=20)
                equal(set(os.listdir(f"{box.source}/.rsb")), {f"sync-{box.name}", "sync-mine"})
                world.rsb(*verb, box.name)
                equal(os.listdir(f"{box.source}/.rsb"), ["sync-mine"], verb)
                own.rmdir()
                os.rmdir(f"{box.source}/.rsb")
            world.rsb("mount", box.name)
        with begun(world, box, "sync", "out") as p, world.sandbox(world.fresh()) as other:
            with open(other.state("state.json"), encoding="utf-8") as f:
                text = f.read()
            with open(other.state("state.json"), "w", encoding="utf-8") as f:
                f.write(text.replace(other.source, box.source))
            world.rsb("sync", "status", other.name)
            check(os.path.exists(f"{box.source}/.rsb/sync-{box.name}/big"), "it is in use")
            equal(p.poll(), None)


def test_what_is_larger_than_may_come(world):
    with project(world) as box:
        box.sh("truncate -s 300G big; echo -n new > file")
        r = world.rsb("sync", "out", box.name, check_status=125)
        sentence(r, "nothing is changed here", "'big' with its 307200 MiB", "sync.out_max", ".rsbignore", "--exclude")
        equal((names(box), pathlib.Path(box.source, "file").read_text(encoding="utf-8")), (["file"], "old"))
        sentence(world.rsb("down", box.name, check_status=125), "'big'", f"rsb down --no-sync {box.name}")
        world.rsb("sync", "out", "--exclude", "/big", box.name)
        equal(pathlib.Path(box.source, "file").read_text(encoding="utf-8"), "new")
        box.sh("truncate -s 1G big; printf x | dd of=big bs=1 seek=9000000 conv=notrunc 2> /dev/null")
        sentence(world.rsb("sync", "out", "-o", "sync.out_max=1023M", box.name, check_status=125), "'big' with its 1024 MiB")
        world.rsb("sync", "out", "-o", "sync.out_max=1G", box.name)
        with open(f"{box.source}/big", "rb") as f:
            f.seek(9000000 - 1)
            equal((f.read(3), os.fstat(f.fileno()).st_size), (b"\0x\0", 1 << 30))


def worker(p):
    pid, = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text(encoding="ascii").split()
    return int(pid)


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "T"


def waits_for(pid, number):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    masks = [line.split()[1] for line in text.split("\n") if line.startswith(("ShdPnd:", "SigPnd:"))]
    return any(int(mask, 16) & 1 << (number - 1) for mask in masks)


def caught_publishing(world, box, first, last):
    """A sync out, stopped while names change here."""
    for _ in range(20):
        with contextlib.ExitStack() as stack:
            p = stack.enter_context(subprocess.Popen(["rsb", "sync", "out", box.name], env=world.env, stdout=subprocess.PIPE,
                                                     stderr=subprocess.PIPE, start_new_session=True))
            stack.callback(p.kill)
            deadline = time.monotonic() + 60
            while not first.exists():  # what comes now is soon over
                check(time.monotonic() < deadline, "nothing comes")
            with contextlib.suppress(OSError, ValueError):
                pid = worker(p)
                os.kill(pid, signal.SIGSTOP)
                harness.wait_until(lambda: is_stopped(pid), 20, "it is stopped")
                if not last.exists():
                    stack.pop_all()
                    return p, pid
                os.kill(pid, signal.SIGCONT)
            p.communicate(timeout=60)
        box.sh("rm -r many")
        world.rsb("sync", "out", "--delete-many", box.name)
        box.sh(MANY)
    raise harness.Failed("it was over each time")


N = 3000
MANY = f"mkdir many; cd many; for i in $(seq 10001 {10000 + N}); do echo $i > $i; done"


def test_what_has_begun_is_finished(world):
    with project(world) as box:
        many = pathlib.Path(box.source, "many")
        for number in NUMBERS:
            box.sh(MANY)
            p, pid = caught_publishing(world, box, many / "10001", many / str(10000 + N))
            with p:
                os.killpg(p.pid, number)
                harness.wait_until(lambda: waits_for(pid, number), 20, "it has come")
                os.kill(pid, signal.SIGCONT)
                os.kill(p.pid, number)
                out, err = p.communicate(timeout=60)
            equal((p.returncode, len(os.listdir(many))), (0, N), err)
            sentence(subprocess.CompletedProcess([], 0, b"", err), "rsb sync: finishing: ", f" of {N + 1}; it cannot be")
            check(f"{N + 1} changed".encode() in out, out)
            equal(names(box), ["file", "many"], "no stage is left")
            box.sh("rm -r many")
            world.rsb("sync", "out", "--delete-many", box.name)


def test_down_looks_first_who_uses_the_mount(world):
    with project(world) as box:
        src = pathlib.Path(box.source, "file")
        box.sh("echo -n new > file")
        with subprocess.Popen(["sleep", "1000"], cwd=box.mount) as p:
            r = world.rsb("down", box.name, check_status=125)
            p.kill()
        sentence(r, f"in use by {p.pid} (sleep)")
        equal(src.read_text(encoding="utf-8"), "old", "nothing has come yet")
        # What is on its way between two processes is open, and no process has it.
        one, two = socket.socketpair()
        with one, two:
            fd = os.open(box.path("file"), os.O_RDONLY)
            one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
            os.close(fd)
            r = world.rsb("down", box.name, check_status=125)
        sentence(r, "is in use", f"synced out to {box.source}: 1 changed, 0 removed")
        equal(src.read_text(encoding="utf-8"), "new")


harness.main(globals())
