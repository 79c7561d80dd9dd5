# SPDX-License-Identifier: MIT
"""A sandbox that is in use when somebody wants to end its mount."""

import contextlib
import os
import signal
import subprocess

import harness
from harness import check, equal, sentence, wait_until


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


def test_commands_that_are_cut_say_why(world):
    """By force, by umount(8), and by a signal to the supervisor."""
    def by_signal(box):
        os.kill(int(open(f"/proc/{box.status()['pid']}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()[1]),
                signal.SIGTERM)
    ends = (lambda box: world.rsb("umount", "--force", box.name), lambda box: world.run("fusermount3", "-u", box.mount),
            lambda box: world.rsb("down", "--force", "--leave", box.name), by_signal)
    with world.sandbox() as box:
        for end in ends:
            with command(world, box, "sleep", "1000") as p:
                end(box)
                out, err = p.communicate(timeout=60)
            equal((p.returncode, out), (125, b""))
            equal(err, b"rsb-exec: lost: the command was ended: the daemon of its sandbox was told to end, as by 'rsb down' or "
                       b"umount\n")
            world.rsb("mount", box.name, box.mount)
            wait_until(lambda: box.exec("pgrep", "-x", "sleep", check_status=None).returncode == 1, 20, "it ends")


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
