# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: nothing is left at the end of a sandbox or of the server. Usage: see localcases.py."""

import os
import signal
import subprocess

import localcases
from localcases import eq
from rsblocal import Server, read_message, wait_for


def descendants(pid):
    rows = [line.split() for line in subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines()]
    found, more = set(), {pid}
    while more:
        found |= more
        more = {int(p) for p, pp in rows if int(pp) in more} - found
    return found - {pid}


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def cgroups(ids):
    found = []
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(root + "/cgroup.procs"):
            for where, names, _ in os.walk(root):
                found += [os.path.join(where, n) for n in names if any(i in n for i in ids)]
    return found


def alive(pids):
    return [p for p in pids if os.path.exists(f"/proc/{p}")]


def kill_leaves_nothing(s):
    for row in s.call("GET", "/sandboxes")[2]:  # of cases that failed
        s.call("DELETE", "/sandboxes/" + row["sandboxID"])
    a = s.create()
    b = s.create()
    if s.by_root:
        eq(len(cgroups([a.id])), 1 if os.path.exists("/sys/fs/cgroup/unified/cgroup.procs") or
           os.path.exists("/sys/fs/cgroup/cgroup.procs") else 0)
    c, r = a.start("/bin/sh", "-c", "setsid sleep 1000 & trap '' TERM; sleep 1000", user="root")
    read_message(r)
    all_pids = descendants(s.child.pid)
    eq(a.kill(), 204)
    # By the time of the answer.
    left = descendants(s.child.pid)
    assert left < all_pids
    eq(cgroups([a.id]), [])
    eq(b.kill(), 204)
    eq(alive(all_pids), [])
    eq(sorted(os.listdir(s.state)), ["lock"])
    c.close()


def the_end_of_a_monitor_leaves_nothing(s):
    for paused in (False, True):
        a = s.create()
        monitors = [p for p in descendants(s.child.pid) if parent(p) == s.child.pid]
        eq(len(monitors), 1)
        if paused:
            eq(s.call("POST", f"/sandboxes/{a.id}/pause", {})[0], 204)
        all_pids = descendants(s.child.pid)
        os.kill(monitors[0], signal.SIGKILL)
        wait_for(lambda: s.call("GET", "/sandboxes/" + a.id)[0] == 404)
        wait_for(lambda: not alive(all_pids))
        wait_for(lambda: not cgroups([a.id]))


def stop_leaves_nothing(program, uid):
    for sig, status in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)):
        s = Server(program, "--disk", "32M", uid=uid)
        made = [s.create(), s.create()]
        c, r = made[0].start("/bin/sleep", "1000")
        read_message(r)
        pids = descendants(s.child.pid)
        assert len(pids) >= 5, pids
        eq(s.stop(sig), status)
        wait_for(lambda: not alive(pids))
        wait_for(lambda: not cgroups([a.id for a in made]))
        wait_for(lambda: s.dir not in subprocess.run(["losetup", "-a"], capture_output=True, text=True,
                                                     check=False).stdout)
        with open("/proc/self/mounts", encoding="utf-8") as f:
            assert s.dir not in f.read()
        eq(sorted(os.listdir(s.state)), ["lock"])
        eq(os.path.exists(s.port_file), sig == signal.SIGKILL)
        c.close()
        s.remove()


localcases.main(
    shared=[kill_leaves_nothing, the_end_of_a_monitor_leaves_nothing],
    own=[stop_leaves_nothing])
