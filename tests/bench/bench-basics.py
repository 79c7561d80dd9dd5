# SPDX-License-Identifier: MIT
"""Sizes, start times and warm commands, with their budgets. Measured by hand on a quiet machine; not a test.

usage: RSB_TEST_BUILD=BUILD python3 tests/bench/bench-basics.py
"""

import gzip
import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import harness  # noqa: E402  (found by the line above)
import mountbox  # noqa: E402

RTT_MS = 40
ROUNDS = 15


def say(what, value, budget):
    print(f"{what:44} {value:>24}   budget {budget}", flush=True)


def median_ms(fn):
    times = []
    for _ in range(ROUNDS):
        start = time.monotonic()
        fn()
        times.append((time.monotonic() - start) * 1000)
    return statistics.median(times)


def start_of_sidecar(world):
    """From the start of the process to the line that says that it listens."""
    r, w = os.pipe()
    os.write(w, secrets.token_hex(32).encode() + b"\n")
    os.close(w)
    sidecar = subprocess.Popen(
        [world.env["RSB_SIDECAR"], "--port", "0", "--listen", "127.0.0.1", "--no-cgroup", "--workspace", world.fresh(),
         "--user", "root", "--key-fd", str(r)], pass_fds=[r], stdout=subprocess.PIPE)
    os.close(r)
    assert sidecar.stdout.readline().startswith(b"ready")
    sidecar.terminate()
    sidecar.wait()
    sidecar.stdout.close()


def sidecar_alone(world):
    with open(world.env["RSB_SIDECAR"], "rb") as f:
        data = f.read()
    say("sidecar, bytes", f"{len(data)}", "-")
    say("sidecar, bytes sent (gzip -9)", f"{len(gzip.compress(data, 9))}", "1200000")
    say("sidecar, start to ready", f"{median_ms(lambda: start_of_sidecar(world)):.1f} ms", "50 ms (+ 3 RTT)")


def sidecar_rss(box):
    """As the sandbox itself sees it, where no sidecar of others is."""
    found = box.sh("grep -h -A30 '^Name:.rsb-sidecar' /proc/[0-9]*/status | grep VmRSS")
    say("sidecar, RSS idle", f"{max(map(int, re.findall(r'[0-9]+', found)))} KiB", "6144 KiB")


def commands(world, box, proxy):
    def true():
        box.exec("true", cwd=None)

    # Entering a directory asks for its attributes, which is not the command's doing.
    os.chdir(box.mount)
    true()
    here = median_ms(lambda: world.run("true"))
    say("true here", f"{here:.1f} ms", "-")
    say("warm rsb-exec true, no distance", f"{median_ms(true):.1f} ms", "5 ms")
    proxy.command(f"rtt {RTT_MS}")
    far = median_ms(true)
    say(f"warm rsb-exec true, {RTT_MS} ms", f"{far:.1f} ms", f"{1.1 * RTT_MS + 5:.0f} ms (1.1 RTT + 5 ms)")
    proxy.command("rtt 0")


def crashes(world):
    """From the death of the daemon to the answer of a call that waits for the next one."""
    times = []
    with mountbox.box(world.fresh(), "crashes=1000") as b:
        for i in range(ROUNDS):
            os.kill(b.processes()[0], signal.SIGKILL)
            start = time.monotonic()
            os.mkdir(f"{b.mount}/{i}")
            times.append((time.monotonic() - start) * 1000)
            mountbox.wait_until(b.answers, "the daemon answers")
    say("crash of the daemon, median and longest wait", f"{statistics.median(times):.0f} and {max(times):.0f} ms", "1000 ms")


def measure(world):
    sidecar_alone(world)
    crashes(world)
    with world.sandbox() as box:
        sidecar_rss(box)
        world.rsb("umount", box.name)
        proxy = harness.DelayProxy(world.local_server()["port"])
        try:
            world.rsb("mount", box.name, box.mount, env={"RSB_LOCAL_URL": f"http://127.0.0.1:{proxy.port}"})
            commands(world, box, proxy)
        finally:
            os.chdir("/")
            world.rsb("umount", box.name)
            proxy.close()


harness.main({"test_measure": measure})
