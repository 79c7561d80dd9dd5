# SPDX-License-Identifier: MIT
"""What a user is told of what happened to a sandbox."""

import json
import subprocess

import harness
from harness import check, equal, named, sentence


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


harness.main(globals())
