# SPDX-License-Identifier: MIT
"""Sandboxes that are paused, by whomever, and go on."""

import contextlib
import json
import socket
import socketserver
import threading
import time

import harness
from harness import check, equal


@contextlib.contextmanager
def host_without_pause(world):
    """A stand-in for an old self-hosted server: all goes through to the real one, but a pause is answered 501."""
    to = ("127.0.0.1", world.local_server()["port"])
    refusal = b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 29\r\n\r\n{\"code\":501,\"message\":\"none\"}"

    class Relay(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.create_connection(to) as there:
                back = threading.Thread(target=self.pass_back, args=(there,))
                back.start()
                while data := self.request.recv(65536):
                    if b"/pause HTTP/1.1" in data:
                        while not data.endswith(b"}"):  # its body
                            data += self.request.recv(65536)
                        self.request.sendall(refusal)
                    else:
                        there.sendall(data)
                there.shutdown(socket.SHUT_WR)
                back.join()

        def pass_back(self, there):
            while data := there.recv(65536):
                self.request.sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield {"RSB_LOCAL_URL": f"http://127.0.0.1:{server.server_address[1]}"}
        finally:
            server.shutdown()


def test_down_where_it_cannot_be_paused(world):
    with world.sandbox() as box, host_without_pause(world) as env:
        # Not all of it is here: that is no success.
        r = world.rsb("down", "--no-sync", box.name, env=env, check_status=125)
        harness.sentence(r, "still running until", "rsb down --kill")
        world.rsb("mount", box.name, box.mount)
        harness.sentence(world.rsb("down", "--pause", box.name, env=env, check_status=125), "still running until")
        world.rsb("mount", box.name, box.mount)
        r = world.rsb("down", box.name, env=env)
        check(b"is down, still running until" in r.stdout, r.stdout)


def test_down_pauses_and_any_use_resumes(world):
    with world.sandbox() as box:
        up = ("up", box.source)  # it goes by the directory, whatever the name
        boot_id = box.sh("sleep 1000 >/dev/null 2>&1 & echo $! >pid; cat /proc/sys/kernel/random/boot_id")
        ways = (lambda: world.rsb("mount", box.name, box.mount), lambda: world.rsb(*up), lambda: None)
        for n, way in enumerate(ways):
            check(b"is down, paused" in world.rsb("down", box.name).stdout, "it says so")
            world.rsb("down", box.name)  # which is paused already
            equal([e["kind"] for e in box.events()].count("paused"), n + 1, "each pause is an event")
            row, = [row for row in json.loads(world.rsb("list", "--json").stdout) if row["name"] == box.name]
            equal((row["state"], "mount" in row), ("paused", False))
            harness.sentence(world.rsb("status", box.name, check_status=125), "is paused", f"'rsb mount {box.name}'",
                             f"'rsb exec -s {box.name}'")
            way()
            r = world.run("rsb-exec", "-s", box.name, "sh", "-c", "kill -0 $(cat pid) && cat /proc/sys/kernel/random/boot_id")
            equal(r.stdout.decode(), boot_id, "the same processes")


def test_what_looks_at_a_paused_one_leaves_it_so(world):
    with world.sandbox() as box:
        box.write("file", b"x")
        sandbox = box.status()["sandbox"]
        world.rsb("down", "--no-sync", box.name)
        for verb in (("sync", "status"), ("sync", "out"), ("sync", "in"), ("snapshot",)):
            r = world.rsb(*verb, box.name)
            equal((state_at_host(world, sandbox), r.stderr), ("paused", b""), verb)
        with open(f"{box.source}/file", "rb") as f:
            equal(f.read(), b"x", "it was synced out")
        equal([e["kind"] for e in box.events()].count("paused"), 5)


def state_at_host(world, sandbox):
    return json.loads(world.api("GET", f"/sandboxes/{sandbox}"))["state"]


def test_left_alone_it_rests_until_it_is_used(world):
    with world.sandbox(up=("-o", "sandbox.ttl=15s", "-o", "keeper.idle_limit=1s")) as box:
        sandbox = box.status()["sandbox"]
        # A command is a use, however long it is silent.
        box.exec("sleep", "4")
        equal(state_at_host(world, sandbox), "running")
        harness.wait_until(lambda: not box.status()["kept"], 30, "it is left to its time")
        check(not any(row.get("kept") for row in json.loads(world.rsb("list", "--json").stdout)), "which the list says")
        box.write("file", b"x")
        uses = (lambda: box.read("file"), lambda: box.sh("cat file").encode())
        for use in uses[:harness.how_many(1, 1, 2)]:  # each takes the 15 seconds that it lives
            harness.wait_until(lambda: box.status()["state"] == "resting", 40, "it rests")
            equal(state_at_host(world, sandbox), "paused")
            start = time.monotonic()
            equal(use(), b"x")
            print(f"     it was there after {time.monotonic() - start:.2f} s")
            equal(state_at_host(world, sandbox), "running")
        kinds = [e["kind"] for e in box.events()]
        check({"idle", "resting", "resuming"} <= set(kinds), kinds)
        check(not set(kinds) & {"unknown", "epoch", "lost", "failing"}, kinds)


def test_the_pause_that_nobody_saw_is_an_event(world):
    """At the end of its time no daemon is there: whoever looks at it, or brings it back, writes it down."""
    with world.sandbox(up=("-o", "sandbox.ttl=15s")) as box:
        sandbox = box.status()["sandbox"]
        paused = lambda: [e["text"] for e in box.events() if e["kind"] == "paused"]

        def leave():
            world.rsb("umount", box.name)
            harness.wait_until(lambda: state_at_host(world, sandbox) == "paused", 40, "its time is over")
        leave()
        said = world.rsb("events", "-n", "1", box.name).stdout
        check(b"  paused: the sandbox was paused by its host: its time was over at " in said, said)
        world.rsb("events", box.name)
        world.rsb("mount", box.name)
        equal(len(paused()), 1, "once")
        leave()
        world.rsb("mount", box.name)
        equal(paused()[1:], ["the sandbox was paused, by its host or by another program"])


def test_the_hosts_limit_begins_anew(world):
    """The host ends each session after 12 seconds; a pause begins it anew, and nobody waits then."""
    with world.own_server("--session-cap", "12s"), world.sandbox() as box:
        sandbox = box.status()["sandbox"]
        kinds = lambda: [e["kind"] for e in box.events()]
        box.sh("sleep 1000 >/dev/null 2>&1 & echo $! >pid")
        harness.wait_until(lambda: "limit" in kinds(), 20, "it is said that something is in the way")
        check("renewing" not in kinds(), kinds())
        box.sh("kill $(cat pid)")
        harness.wait_until(lambda: "renewing" in kinds(), 20, "it is renewed")
        harness.wait_until(lambda: box.status()["state"] == "live", 20, "it is back")
        first = json.loads(world.api("GET", f"/sandboxes/{sandbox}"))
        harness.wait_until(lambda: kinds().count("renewing") > 1, 20, "and again")
        wait = lambda: json.loads(world.api("GET", f"/sandboxes/{sandbox}"))["endAt"] > first["endAt"]
        harness.wait_until(wait, 20, "its end has moved")
        check(not set(kinds()) & {"unknown", "epoch", "lost", "failing"}, kinds())


harness.main(globals())
