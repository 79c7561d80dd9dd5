# SPDX-License-Identifier: MIT
"""A sandbox that is in use when somebody wants to end its mount."""

import contextlib
import os
import signal
import subprocess
import time

import harness
from harness import check, equal, sentence, wait_until


ENDED = b"rsb-exec: lost: the command was ended: the daemon of its sandbox was told to end, as by 'rsb down' or umount\n"
UNKNOWN = b"rsb-exec: lost: the daemon of the sandbox was told to end; whether the command has ended nobody knows\n"
NOT_BEGUN = b"rsb-exec: fatal: the daemon of the sandbox was told to end, and the command did not begin\n"


@contextlib.contextmanager
def command(world, box, *argv):
    """One that runs, from a place where nothing of the mount is held."""
    with subprocess.Popen(["rsb-exec", "-s", box.name, "sh", "-c", 'echo runs; exec "$@"', "sh", *argv], env=world.env,
                          cwd=world.tmp, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        try:
            equal(p.stdout.readline(), b"runs\n")
            yield p
        finally:
            p.kill()


def test_commands_keep_it(world):
    with world.sandbox() as box:
        with command(world, box, "sleep", "1000") as first:
            status = box.status()
            equal((status["attended"], len(status["running"])), (1, 1))
            check("sleep 1000" in status["running"][0], status)
            for verb in ("umount",), ("down", "--leave"), ("destroy",):
                sentence(world.rsb(*verb, box.name, check_status=125), "is in use: 1 command runs in it ('sh -c ", "--force")
            with command(world, box, "sleep", "1001"):
                sentence(world.rsb("down", box.name, check_status=125), "2 commands run in it ('sh -c ", "', 'sh -c ")
            equal(first.poll(), None, "it goes on")
            wait_until(lambda: box.status()["attended"] == 1, 20, "one is left")
        # What is left in the background keeps nobody.
        wait_until(lambda: box.status()["attended"] == 0, 20, "none is left")
        box.sh("sleep 1002 >/dev/null 2>&1 &")
        world.rsb("umount", box.name)


def supervisor(box):
    return list(harness.ancestors(box.status()["pid"]))[1]


def logged(box):
    with open(box.state("log"), encoding="utf-8", errors="replace") as log:
        return log.read()


def by_signal(box):
    os.kill(supervisor(box), signal.SIGTERM)


@contextlib.contextmanager
def notifier_stands(box):
    """What is between two barriers stays there."""
    pid, = (p for p in harness.below(supervisor(box)) if harness.comm(p) == "rsb-notify")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_commands_that_are_cut_say_why(world):
    """By force, by umount(8), and by a signal to the supervisor."""
    ends = (lambda box: world.rsb("umount", "--force", box.name), lambda box: world.run("fusermount3", "-u", box.mount),
            lambda box: world.rsb("down", "--force", "--leave", box.name), by_signal)
    with world.sandbox() as box:
        for end in ends:
            with command(world, box, "sleep", "1000") as p:
                end(box)
                out, err = p.communicate(timeout=60)
            equal((p.returncode, out), (125, b""))
            equal(err, ENDED)
            world.rsb("mount", box.name, box.mount)
            wait_until(lambda: box.exec("pgrep", "-x", "sleep", check_status=None).returncode == 1, 20, "it ends")


def test_commands_out_of_reach(world):
    """Nobody hears of their end, which is not said, and soon; they go on."""
    ends = (lambda box: world.rsb("umount", "--force", box.name), lambda box: world.run("fusermount3", "-u", box.mount),
            by_signal)
    for n, end in enumerate(ends):
        with harness.far_mount(world) as (box, proxy), command(world, box, "sleep", f"100{n}") as p:
            proxy.command("refuse on")
            proxy.command("drop")
            wait_until(lambda: box.status()["state"] != "live", 20, "the link is down")
            start = time.monotonic()
            end(box)
            out, err = p.communicate(timeout=60)
            equal((p.returncode, out, err), (125, b"", UNKNOWN))
            check(time.monotonic() - start < 15, "it does not wait for a kill that was never heard")
            check("not everything that was written" not in logged(box))
            proxy.command("refuse off")
            world.run("rsb-exec", "-s", box.name, "pgrep", "-f", f"^sleep 100{n}")


def test_a_command_that_does_not_obey(world):
    """It has its grace, and is waited for."""
    with world.sandbox(up=("-o", "exec.grace=2s")) as box, \
            command(world, box, "sh", "-c", 'trap "" TERM; echo set; while :; do sleep 1; done') as p:
        equal(p.stdout.readline(), b"set\n")
        start = time.monotonic()
        world.rsb("umount", "--force", box.name)
        check(time.monotonic() - start >= 2, "the grace")
        out, err = p.communicate(timeout=60)
        equal((p.returncode, out, err), (125, b"", ENDED))


def test_a_command_that_had_not_begun(world):
    """It is in front of the barrier."""
    with world.sandbox() as box, notifier_stands(box), \
            subprocess.Popen(["rsb-exec", "-n", "-s", box.name, "touch", "ran"], env=world.env, cwd=world.tmp,
                             stderr=subprocess.PIPE) as p:
        wait_until(lambda: box.status()["attended"] == 1, 5, "it is asked for")
        by_signal(box)
        _, err = p.communicate(timeout=60)
        equal((p.returncode, err), (125, NOT_BEGUN))
    check(not os.path.exists(f"{box.source}/ran"))


def test_a_command_that_had_ended(world):
    """By itself, and it is only not shown yet: its status is its own."""
    with world.sandbox() as box, \
            subprocess.Popen(["rsb-exec", "-s", box.name, "sh", "-c", "echo runs; read x; exit 7"], env=world.env,
                             cwd=world.tmp, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        equal(p.stdout.readline(), b"runs\n")
        with notifier_stands(box):
            p.stdin.write(b"x\n")
            p.stdin.flush()
            wait_until(lambda: box.status()["commands"] == 0, 5, "the daemon has heard of its end")
            equal(box.status()["attended"], 1)
            by_signal(box)
            out, err = p.communicate(timeout=60)
        equal((p.returncode, out, err), (7, b"", b""))


def rests(p, name):
    with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
        return harness.comm(p.pid) == name and f.read().rsplit(")", 1)[1].split()[0] == "S"


def test_a_command_that_comes_to_the_end(world):
    """The daemon still waits for what was written: the next one takes the command, and all of its input."""
    with harness.far_mount(world) as (box, proxy):
        pid = box.status()["pid"]
        check(not os.path.exists(box.path("late")), "it is asked for once, and known from then on")
        proxy.command("stall on")
        with subprocess.Popen(["mkdir", box.path("late")]) as late:
            wait_until(lambda: rests(late, "mkdir"), 20, "it is asked for")
            by_signal(box)
            wait_until(lambda: "told to end" in logged(box), 20, "the end has begun")
            with subprocess.Popen(["rsb-exec", "-s", box.name, "sh", "-c", "sleep 2; cat; echo *"], env=world.env,
                                  cwd=world.tmp, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
                wait_until(lambda: rests(p, "rsb-exec"), 20, "it is there")
                proxy.command("stall off")
                out, err = p.communicate(b"input ", timeout=60)
        equal((p.returncode, out, err), (0, b"input late\n", b""))
        check(box.status()["pid"] != pid, "another daemon")


def test_a_command_that_comes_while_it_is_told_to_end(world):
    """Who told it may have more to do with the sandbox: no daemon is started again beneath."""
    with harness.far_mount(world) as (box, proxy):
        check(not os.path.exists(box.path("late")), "it is asked for once, and known from then on")
        proxy.command("stall on")
        with subprocess.Popen(["mkdir", box.path("late")]) as late:
            wait_until(lambda: rests(late, "mkdir"), 20, "it is asked for")
            with subprocess.Popen(["rsb", "umount", box.name], env=world.env) as umount:
                wait_until(lambda: rests(umount, "rsb"), 20, "it waits")
                wait_until(lambda: b"told to end" in world.run("rsb-exec", "-s", box.name, "true", cwd=world.tmp,
                                                               check_status=125).stderr, 20, "none begins")
                proxy.command("stall off")
                equal(umount.wait(60), 0)
        equal(world.run("rsb-exec", "-s", box.name, "ls", cwd=world.tmp).stdout, b"late\n", "the next one takes it")


def test_a_mount_in_the_mount(world):
    """It is named, before anything is synced out; and no sandbox is mounted in it, whatever lies between."""
    with world.sandbox() as box, harness.named(world, "inner") as name:
        world.rsb("create", name)
        os.mkdir(box.path("dir"))
        sentence(world.rsb("mount", name, box.path("dir/in"), check_status=125), "lies in the mount of a sandbox")
        equal(os.listdir(box.path("dir")), [])
        if os.geteuid() != 0:
            return
        world.run("mount", "-t", "tmpfs", "none", box.path("dir"))
        try:
            sentence(world.rsb("mount", name, box.path("dir/in"), check_status=125), "lies in the mount of a sandbox")
            box.write("new", b"x")
            for verb in ("umount",), ("down", "--leave"):
                sentence(world.rsb(*verb, box.name, check_status=125), f"something is mounted in it, at '{box.path('dir')}'")
            check(not os.path.exists(f"{box.source}/new"), "nothing is begun")
        finally:
            world.run("umount", box.path("dir"))
        world.rsb("umount", box.name)


harness.main(globals())
