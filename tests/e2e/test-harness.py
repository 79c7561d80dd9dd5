# SPDX-License-Identifier: MIT
"""The harness itself: a file of tests that is stopped leaves no mount, no process and no directory."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import check, wait_until

FILE = """
import subprocess
import harness

def test_hangs(world):
    with world.sandbox() as box:
        held = open(box.path("held"), "wb")
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "echo begun; exec sleep 1000"], cwd=box.mount, env=world.env,
                             stdout=subprocess.PIPE)
        p.stdout.readline()
        print("tmp", world.tmp, flush=True)
        p.communicate()

harness.main(globals())
"""


def is_there(tmp):
    return [tmp for _ in range(os.path.exists(tmp))] + harness.mounts_below(tmp) + harness.processes_of(tmp)


def stopped_by(world, number):
    name = os.path.join(world.fresh(), "test-hang.py")
    with open(name, "w", encoding="ascii") as f:
        f.write(FILE)
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(harness.__file__))}
    with tempfile.TemporaryFile() as err:
        p = subprocess.Popen([sys.executable, "-B", name], env=env, stdout=subprocess.PIPE, stderr=err,
                             start_new_session=True)
        tmp = p.stdout.readline().decode().split()[1]
        check(harness.mounts_below(tmp) and harness.processes_of(tmp), "it does not hang as it should")
        # As meson does at a timeout.
        os.killpg(p.pid, number)
        time.sleep(0.5)
        if number == signal.SIGTERM:
            os.killpg(p.pid, signal.SIGKILL)
        check(p.wait(60) != 0, "it passed")
        p.stdout.close()
        wait_until(lambda: not is_there(tmp), 60, "the tear-down")


def test_stopped_by_a_timeout(world):
    stopped_by(world, signal.SIGTERM)


def test_stopped_by_hand(world):
    stopped_by(world, signal.SIGINT)


def test_killed(world):
    stopped_by(world, signal.SIGKILL)


harness.main(globals())
