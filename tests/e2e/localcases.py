# SPDX-License-Identifier: MIT
"""
Cases of rsb-local: each function shows one promise, as root and as an ordinary user. A file ends with main(), whose
shared cases get one server, and whose own ones start theirs.

usage: test-local-WHAT.py PROGRAM [NAME...]
"""

import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
import traceback

import guard
from rsblocal import Server

SKIP = 77
USER = int(os.environ.get("RSB_TEST_UID", "61234"))  # by default no user of the machine


def eq(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def memory_is_bounded(s):
    with open(s.program, "rb") as f:
        if b"__asan_init" in f.read():
            return  # which keeps what was freed
    with open(f"/proc/{s.child.pid}/status", encoding="ascii") as f:
        rss = int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
    assert rss < 60000, rss


def multi_uid(a):
    return a.text("wc -l < /proc/self/uid_map; awk '{print $3}' /proc/self/uid_map").split()[1] != "1"


def ends_well(server):
    text = server.text()
    try:
        eq(server.stop(), 0)
    except AssertionError as e:
        raise AssertionError(f"{e}: {text[-4000:]}") from e
    finally:
        server.remove()


class Run:
    """The cases that were asked for, as one user."""

    def __init__(self, program, uid, names):
        self.program = program
        self.uid = uid
        self.names = names
        self.who = "root" if uid is None and os.geteuid() == 0 else "user"
        self.failed = 0

    def report(self, fn, *args):
        t = time.monotonic()
        try:
            note = fn(*args)
            print(f"ok - {self.who}: {fn.__name__} ({time.monotonic() - t:.2f} s{', ' + note if note else ''})", flush=True)
        except Exception as e:  # every case gets its turn
            self.failed += 1
            traceback.print_exc()
            print(f"not ok - {self.who}: {fn.__name__}: {type(e).__name__}: {str(e)[:2000]}", flush=True)

    def wanted(self, cases):
        return [fn for fn in cases if not self.names or fn.__name__ in self.names]

    def run(self, shared, own):
        server = None
        try:
            for fn in self.wanted(shared):
                if server is None or server.child.poll() is not None:
                    server = Server(self.program, uid=self.uid)
                self.report(fn, server)
        finally:
            if server:
                self.report(ends_well, server)
        for fn in self.wanted(own):
            self.report(fn, self.program, self.uid)
        return self.failed


@contextlib.contextmanager
def within_reach(program, uid):
    """The program and its agent where another user may execute them: a home directory is closed to him."""
    if uid is None:
        yield program
        return
    agent = os.path.join(os.path.dirname(program), "../envd/rsb-envd")
    with tempfile.TemporaryDirectory(prefix="rsb-reach-") as directory:
        os.chmod(directory, 0o755)
        for path in (program, agent if os.path.exists(agent) else os.path.join(os.path.dirname(program), "rsb-envd")):
            shutil.copy(path, directory)
        yield os.path.join(directory, os.path.basename(program))


def run_as(program, uid, shared, own):
    with within_reach(program, uid) as reached:
        return Run(reached, uid, sys.argv[2:]).run(shared, own)


def run_all(shared, own):
    program = os.path.abspath(sys.argv[1])
    who = os.environ.get("RSB_TEST_AS", "both" if os.geteuid() == 0 else "user")
    uids = [None] if who in ("both", "root") else []
    if who in ("both", "user"):
        uids.append(USER if os.geteuid() == 0 else None)
    failed = sum(run_as(program, uid, shared, own) for uid in uids)
    print(f"{failed} failed")
    return 1 if failed else 0


def main(shared, own):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        print("setpriv is missing")
        sys.exit(SKIP)
    guard.run(lambda: run_all(shared, own))
