# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: pause and resume. Usage: see localcases.py."""

import http.client
import time

import localcases
from localcases import eq
from rsblocal import read_message, wait_for

CLOCK = 'while :; do cut -d" " -f1 /proc/uptime; sleep 0.02; done >/tmp/clock'

# The same in Python.
TICK = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
last = 0
def tick():
    global last
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    if now - last > 0.02:
        last = now
        with open("/tmp/clock", "a") as f:
            print(now, file=f)
def run():
    while True:
        tick()
        time.sleep(0.02)
"""
# Its first thread ends alone: it is a zombie then.
HEADLESS = TICK + """
threading.Thread(target=run).start()
libc.pthread_exit(None)
"""
# Each one lives until its child does.
CHAIN = TICK + """
while True:
    tick()
    if os.fork():
        os._exit(0)
"""
# The first thread waits for a child of vfork that opens a FIFO before it executes, the other one runs.
VFORK = TICK + """
threading.Thread(target=run).start()
os.mkfifo("/tmp/fifo")
actions, child = ctypes.create_string_buffer(1024), ctypes.c_int()
args = (ctypes.c_char_p * 2)(b"true", None)
libc.posix_spawn_file_actions_init(actions)
libc.posix_spawn_file_actions_addopen(actions, 0, b"/tmp/fifo", os.O_RDONLY, 0)
libc.posix_spawn(ctypes.byref(child), b"/bin/true", actions, None, args, args)
os.mkdir("/tmp/spawned")
"""


def facts(s, a):
    return s.call("GET", "/sandboxes/" + a.id)[2]


def ids(s, query):
    return [row["sandboxID"] for row in s.call("GET", "/v2/sandboxes?" + query)[2]]


def pause(s, a):
    eq(s.call("POST", f"/sandboxes/{a.id}/pause", {"memory": True})[0], 204)


def resume(s, a, want=201):
    status, _, body = s.call("POST", f"/sandboxes/{a.id}/connect", {"timeout": 60})
    eq((status, body["sandboxID"], body["envdAccessToken"]), (want, a.id, a.token))


def clock(a):
    return [float(t) for t in a.text("cat /tmp/clock || :").split()]


def it_stood_still(a):
    """For the one second that it was paused; and goes on."""
    n = len(clock(a))
    wait_for(lambda: len(clock(a)) > n)
    ticks = clock(a)
    gap = max(b - a for a, b in zip(ticks, ticks[1:]))
    assert gap > 0.8, f"it ran on: {gap}"


def stands_still(s, cmd, *args, times=1):
    """The clock of a command, in a sandbox that is given back."""
    a = s.create()
    c, r = a.start(cmd, *args)
    read_message(r)
    for _ in range(times):
        wait_for(lambda: len(clock(a)) > 3)
        pause(s, a)
        began = time.monotonic()
        while time.monotonic() - began < 1:
            time.sleep(0.1)
        resume(s, a)
        it_stood_still(a)
        a.text("rm /tmp/clock")
    c.close()
    return a


def what_ran_goes_on(s):
    a = s.create(secure=True)
    boot_id = a.text("cat /proc/sys/kernel/random/boot_id")
    c, r = a.start("/bin/sh", "-c", CLOCK)
    read_message(r)
    wait_for(lambda: len(clock(a)) > 3)
    first = facts(s, a)
    began = time.monotonic()
    pause(s, a)
    paused = facts(s, a)
    eq(paused["state"], "paused")
    assert paused["endAt"] < first["endAt"], paused
    eq((a.id in ids(s, "state=paused"), a.id in ids(s, "state=running"), a.id in ids(s, "")), (True, False, True))
    eq(s.call("GET", "/sandboxes")[2], [])
    while time.monotonic() - began < 1:
        time.sleep(0.1)  # this is what is to be missing on its clock
    resume(s, a)
    eq(facts(s, a)["state"], "running")
    assert facts(s, a)["startedAt"] > first["startedAt"]
    it_stood_still(a)
    eq(a.text("cat /proc/sys/kernel/random/boot_id"), boot_id)
    resume(s, a, 200)
    # The stream of before is over; a new one is not.
    try:
        raise AssertionError(f"a clean end: {r.read()!r}")
    except (http.client.IncompleteRead, ConnectionError):
        pass
    c.close()
    eq(a.kill(), 204)


def what_is_asked_of_a_paused_one(s):
    a = s.create()
    pause(s, a)
    eq(a.health(), 502)
    for verb, body, want in (("pause", {}, 409), ("timeout", {"timeout": 5}, 404), ("refreshes", {"duration": 20}, 404),
                             ("connect", {}, 400), ("connect", {"timeout": 90000}, 400), ("pause", {"memory": "no"}, 400)):
        eq((verb, s.call("POST", f"/sandboxes/{a.id}/{verb}", body)[0]), (verb, want))
    eq(s.call("POST", f"/sandboxes/{a.id}/resume", {"timeout": 60})[0], 201)
    eq(s.call("POST", f"/sandboxes/{a.id}/resume", {"timeout": 60})[0], 409)
    eq(s.call("POST", f"/sandboxes/{a.id}/pause", {"memory": False})[0], 501)
    eq(a.health(), 204)
    pause(s, a)
    eq(a.kill(), 204)
    eq(s.call("POST", f"/sandboxes/{a.id}/connect", {"timeout": 60})[0], 404)


def it_pauses_at_its_end(s):
    a = s.create(timeout=1, autoPause=True)
    eq(facts(s, a)["lifecycle"]["onTimeout"], "pause")
    wait_for(lambda: facts(s, a)["state"] == "paused")
    resume(s, a)
    eq(s.call("POST", f"/sandboxes/{a.id}/timeout", {"timeout": 0})[0], 204)
    wait_for(lambda: facts(s, a)["state"] == "paused")
    eq(a.kill(), 204)


def nothing_escapes_it(s):
    """Processes come and go, continue each other, and one was stopped by its own user."""
    a = s.create()
    a.text("exec >/dev/null 2>&1; sleep 1000 & echo $! >/tmp/stopped; kill -STOP $!; sleep 1001 & echo $! >/tmp/other;"
           "for i in 1 2 3 4; do sh -c 'while :; do (: ); done' & done;"
           "sh -c 'while :; do kill -CONT $(cat /tmp/other); done' & :")
    state = "cut -d' ' -f3 /proc/$(cat /tmp/stopped)/stat"
    wait_for(lambda: a.text(state) == "T\n")
    for _ in range(3):
        pause(s, a)
        resume(s, a)
        eq(a.text(state), "T\n")
    pause(s, a)
    eq(a.kill(), 204)


def no_namespace_escapes_it(s):
    a = stands_still(s, "/usr/bin/unshare", "-Urpf", "/usr/bin/unshare", "-Urpf", "/bin/sh", "-c", CLOCK)
    eq(a.kill(), 204)


def no_thread_escapes_it(s):
    a = stands_still(s, "/usr/bin/python3", "-c", HEADLESS)
    eq(a.kill(), 204)


def no_chain_of_forks_escapes_it(s):
    a = stands_still(s, "/usr/bin/python3", "-c", CHAIN, times=3)
    eq(a.kill(), 204)


def no_vfork_is_in_its_way(s):
    a = stands_still(s, "/usr/bin/python3", "-c", VFORK)
    a.text("[ ! -e /tmp/spawned ] && : >/tmp/fifo")
    wait_for(lambda: a.sh("[ -e /tmp/spawned ]").code == 0)
    eq(a.kill(), 204)


localcases.main(
    shared=[what_ran_goes_on, what_is_asked_of_a_paused_one, it_pauses_at_its_end, nothing_escapes_it,
            no_namespace_escapes_it, no_thread_escapes_it, no_chain_of_forks_escapes_it, no_vfork_is_in_its_way],
    own=[])
