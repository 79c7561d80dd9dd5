# SPDX-License-Identifier: MIT
"""What people stumble over who have read the README and the manual pages, and nothing else."""

import json
import os

import harness
from harness import answer, check, equal, sentence


def test_another_runtime_directory(world):
    """Over ssh, from cron or under su it is another one, or none: the sandboxes are the same."""
    absent = f"{world.tmp}/no-such-runtime"
    with world.sandbox() as box:
        server = world.local_server()
        for runtime in (world.fresh("run"), absent, ""):
            env = {"XDG_RUNTIME_DIR": runtime}
            row, = json.loads(world.rsb("list", "--json", env=env).stdout)
            equal((row["name"], row["state"]), (box.name, "running"), runtime)
            equal(answer(world.rsb("status", "--json", box.name, env=env))["state"], "live", runtime)
            equal(box.exec("echo", "here", env=env).stdout, b"here\n", runtime)
            check(not os.path.exists(absent), "a runtime directory is not ours to make")
            world.rsb("umount", box.name, env=env)
            world.rsb("mount", box.name)
        equal(world.local_server(), server, "there is one rsb-local")
        world.rsb("destroy", box.name, env=env)
    r = world.run("rsb-local", "--idle", "1s", env={"XDG_RUNTIME_DIR": absent}, check_status=2)
    check(absent.encode() in r.stderr and b"--state" in r.stderr, r.stderr)
    check(not os.path.exists(absent), "nor rsb-local's")


def test_doctor_looks_at_the_sidecar(world):
    text = f"{world.fresh()}/text"
    with open(text, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n")
    source = world.fresh("src")
    for path in ("/nope", "/dev/null", source, text):
        env = {"RSB_SIDECAR": path}
        bad = [c["how"] for c in answer(world.rsb("doctor", "--json", env=env, check_status=1))["checks"] if not c["ok"]]
        check(len(bad) == 1 and path in bad[0] and "RSB_SIDECAR" in bad[0], bad)
        sentence(world.rsb("up", source, env=env, check_status=125), path, "RSB_SIDECAR")
    world.rsb("doctor")


harness.main(globals())
