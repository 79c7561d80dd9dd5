# SPDX-License-Identifier: MIT
"""Random operations on a mount with fixed seeds: contents against a model, names against a local directory, and
both against what is over there. RSB_SEED=N runs that seed alone; RSB_TEST_FULL a hundred thousand operations.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import harness  # noqa: E402
import mountbox  # noqa: E402

BUILD = mountbox.BUILD
FULL = harness.how_many(False, False, True)
# name, files or None for a tree, options of the mount, operations in the short and in the full set
RUNS = [
    ("one file", 1, (), 2000, 30000),
    ("many files", 8, (), 2000, 40000),
    ("many files in sync mode", 8, ("sync",), 500, 15000),
    ("on a kernel that cannot expire", 3, ("noexpire",), 500, 15000),
    ("a tree", None, (), 4000, 60000),
    ("a tree in sync mode", None, ("sync",), 1000, 20000),
    ("a tree on such a kernel", None, ("noexpire",), 1000, 20000),
]


def serve(argv, command):
    """Runs argv; each "barrier" that it prints is answered after a command over there."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            if line == "barrier\n":
                command()
                p.stdin.write("go\n")
                p.stdin.flush()
            else:
                print(line, end="", flush=True)
        status = p.wait()
    if status < 0:
        print(f"died of {signal.Signals(-status).name}")
    return status


def run(tmp, files, options, seed, n):
    with mountbox.box(tmp, *options) as b, tempfile.TemporaryDirectory(dir=tmp) as local:
        if files:
            argv = [f"{BUILD}/tests/posix/posix-fsx", b.mount, b.workspace, str(seed), str(n), str(files)]
        else:
            argv = [f"{BUILD}/tests/posix/posix-tree", b.mount, b.workspace, local, str(seed), str(n)]
        return serve(argv, b.command)


def main():
    failed = 0
    seeds = [int(os.environ["RSB_SEED"])] if "RSB_SEED" in os.environ else [1, 2, 3] if FULL else [1]
    with tempfile.TemporaryDirectory(prefix="rsb-random.") as tmp:
        for name, files, options, short, full in RUNS:
            for seed in seeds:
                n = (full if FULL else short) // len(seeds)
                start = time.monotonic()
                bad = run(os.path.realpath(tmp), files, options, seed, n)
                failed += bad != 0
                print(f"{'FAIL' if bad else 'ok  '} {name}, seed {seed}, {n} operations "
                      f"({time.monotonic() - start:.1f} s)", flush=True)
    return 1 if failed else 0


mountbox.run(main)
