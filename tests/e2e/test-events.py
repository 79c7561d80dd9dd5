# SPDX-License-Identifier: MIT
"""What a user is told of what happened to a sandbox."""

import datetime
import json
import os
import signal
import subprocess

import harness
from harness import check, equal, named, sentence, wait_until


def test_events(world):
    with named(world, "told") as name:
        world.rsb("create", name)
        first, = world.rsb("events", "--json", name).stdout.splitlines()
        equal(json.loads(first)["kind"], "created")
        for word in ("many", "-1", ""):
            sentence(world.rsb("events", "-n", word, name, check_status=2), "a number of events")
        with subprocess.Popen(["rsb", "events", "-f", name], env=world.env, stdout=subprocess.PIPE) as p:
            check(b"  created: " in p.stdout.readline(), "what there is already")
            world.run("rsb-exec", "-s", name, "true")
            check(b"  live: " in p.stdout.readline(), "and what comes")
            # Local time, with the date: the line may be read on another day.
            r = world.rsb("events", name, env={"TZ": "ABC-02:30"})
            when = datetime.datetime.fromisoformat(json.loads(first)["time"])
            when = when.astimezone(datetime.timezone(datetime.timedelta(hours=2, minutes=30)))
            check(r.stdout.decode().startswith(f"{when:%Y-%m-%d %H:%M:%S}  created: "), (r.stdout, when))
            r = world.rsb("events", "-n", "1", name)
            check(r.stdout.count(b"\n") == 1 and b"  live: " in r.stdout, r.stdout)
            # The sandbox has no way to a terminal by it.
            with open(f"{world.env['XDG_STATE_HOME']}/rsb/{name}/events", "a", encoding="utf-8") as f:
                f.write('{"kind":"x","text":"\\u001b[2J\\u009b"}\n')
            equal(p.stdout.readline(), b"?  x: \\x1b[2J\\xc2\\x9b\n")
            world.rsb("destroy", name)
            rest = p.stdout.read()
            equal((p.wait(20), b"\x1b" in rest), (0, False))
        sentence(world.rsb("events", name, check_status=125), name)


def lose(world, box):
    """What a command had left running: the next one would say so."""
    before = [e["kind"] for e in box.events()].count("lost")
    box.sh("sleep 1000 >/dev/null 2>&1 &")
    for pid in harness.sidecars_of(world.local_server()["pid"]):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: [e["kind"] for e in box.events()].count("lost") > before, 30, "it is lost")


def test_who_ends_the_daemon_tells_what_was_lost(world):
    """Its events have it, but nobody reads them; with the daemon goes what was not told."""
    with world.sandbox() as box:
        for verb in ("umount", "down"):
            lose(world, box)
            r = world.rsb(verb, *(["--leave"] if verb == "down" else []), box.name)
            sentence(r, f"rsb {verb}: note: lost: what the command sh -c ", "had left running")
            world.rsb("mount", box.name, box.mount)
        lose(world, box)
        check(b"rsb-exec: note: lost: " in box.exec("true").stderr, "a command tells")
        equal(world.rsb("down", "--leave", box.name).stderr, b"", "once")


def test_a_command_is_run_for_each_event(world):
    log = f"{world.tmp}/notified"
    command = f'echo "$RSB_SANDBOX $RSB_EVENT_KIND" >> {log}'
    with world.sandbox() as box:
        world.rsb("umount", box.name)
        world.rsb("mount", "-o", f"notify.command={command}", box.name, box.mount)

        def told(kind):
            try:
                with open(log, encoding="ascii") as f:
                    return f"{box.name} {kind}" in f.read().split("\n")
            except FileNotFoundError:
                return False
        wait_until(lambda: told("live"), 20, "it is told of the link")
        os.kill(box.status()["pid"], signal.SIGKILL)
        wait_until(lambda: told("crashed"), 20, "and of a crash")
        # One that hangs keeps nobody from ending.
        world.rsb("umount", box.name)
        world.rsb("mount", "-o", f"notify.command=echo $$ >{log}; exec sleep 1000", box.name, box.mount)
        wait_until(lambda: os.path.getsize(log) < 20, 20, "it runs")
        with open(log, encoding="ascii") as f:
            pid = int(f.read())
        world.rsb("umount", box.name)
        wait_until(lambda: not harness.guard.is_alive(pid), 20, "it is gone")


def test_a_command_ends_with_the_daemon(world):
    """Also when that is killed, and with all that it has started."""
    log = f"{world.tmp}/pids"
    with world.sandbox() as box:
        world.rsb("umount", box.name)
        world.rsb("mount", "-o", f"notify.command=sleep 1000 & echo $! $$ >> {log}; wait", box.name, box.mount)
        wait_until(lambda: os.path.exists(log) and os.path.getsize(log), 20, "it runs")
        with open(log, encoding="ascii") as f:
            pids = list(map(int, f.readline().split()))
        equal([harness.guard.is_alive(pid) for pid in pids], [True, True])
        os.kill(box.status()["pid"], signal.SIGKILL)
        wait_until(lambda: not any(map(harness.guard.is_alive, pids)), 20, "nobody of it is left")


harness.main(globals())
