# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: the control plane, options, the server's own life. Usage: see localcases.py."""

import http.client
import json
import os
import re
import subprocess
import time

import localcases
from localcases import eq
from rsblocal import DEADLINE, KEY, Server, read_message, wait_for


def control_plane(s):
    eq(s.call("GET", "/health", headers={})[0], 204)
    status, _, body = s.call("GET", "/sandboxes", headers={})
    eq((status, body["code"]), (401, 401))
    eq(s.call("GET", "/nothing")[2]["code"], 404)
    a = s.create(metadata={"who": "a b&c", "k.x": "1"}, envVars={"FROM_CREATE": "yes"})
    status, _, b = s.call("POST", "/v2/sandboxes", {"templateID": "base"})
    eq(status, 201)
    assert len(b["envdAccessToken"]) == 64 and re.fullmatch("i[a-z0-9]{20}", b["sandboxID"])
    status, head, rows = s.call("GET", "/v2/sandboxes")
    eq([r["sandboxID"] for r in rows], [b["sandboxID"], a.id])
    eq(head["X-Total-Running"], "2")
    eq(rows[1]["metadata"], {"who": "a b&c", "k.x": "1"})
    eq(rows[0]["state"], "running")
    status, head, rows = s.call("GET", "/v2/sandboxes?limit=1&order=asc")
    eq([r["sandboxID"] for r in rows], [a.id])
    status, _, rows = s.call("GET", "/v2/sandboxes?order=asc&nextToken=" + head["X-Next-Token"])
    eq([r["sandboxID"] for r in rows], [b["sandboxID"]])
    # Three layers of encoding, as the SDKs have them.
    rows = s.call("GET", "/v2/sandboxes?metadata=who%3Da%252520b%252526c%26k.x%3D1")[2]
    eq([r["sandboxID"] for r in rows], [a.id])
    eq(s.call("GET", "/v2/sandboxes?state=paused")[2], [])
    eq(s.call("GET", "/sandboxes?metadata=who%3Dnobody")[2], [])
    for bad in ("limit=0", "limit=101", "state=odd", "order=up", "metadata=novalue"):
        eq(s.call("GET", "/v2/sandboxes?" + bad)[0], 400)
    status, _, d = s.call("GET", "/sandboxes/" + a.id)
    eq((status, d["envdAccessToken"]), (200, a.token))
    # The old form of ids, with a client's id behind a dash.
    eq(s.call("GET", f"/sandboxes/{a.id}-local")[0], 200)
    eq(s.call("GET", f"/sandboxes/{a.id}-x-y")[0], 400)
    eq(s.call("GET", "/templates/aliases/base")[2]["templateID"], "base")
    for verb in ("fork", "snapshots"):
        status, _, body = s.call("POST", f"/sandboxes/{a.id}/{verb}", {})
        eq((status, body["code"]), (501, 501))
    eq(a.text("echo $FROM_CREATE"), "yes\n")
    eq(s.call("DELETE", "/sandboxes/" + b["sandboxID"])[0], 204)
    status, _, body = s.call("DELETE", "/sandboxes/" + b["sandboxID"])
    eq((status, body["code"]), (404, 404))
    eq(a.kill(), 204)


def create_is_checked(s):
    for body, want in (
            ({}, 400), ({"templateID": "other"}, 404),
            ({"templateID": "base", "timeout": 0}, 400),
            ({"templateID": "base", "timeout": -5}, 400),
            ({"templateID": "base", "timeout": 90000}, 400),
            ({"templateID": "base", "timeout": "9"}, 400),
            ({"templateID": "base", "metadata": {"a": 1}}, 400),
            ({"templateID": "base", "metadata": []}, 400),
            ({"templateID": "base", "envVars": {"A": None}}, 400),
            ({"templateID": "base", "secure": "yes"}, 400),
            ({"templateID": "base", "envVars": {"A": "x" * 200000}}, 400)):
        status, _, answer = s.call("POST", "/sandboxes", body)
        eq((status, answer["code"]), (want, want))
    c = s.connection()
    c.request("POST", "/sandboxes", b"{not json", KEY)
    eq(c.getresponse().status, 400)
    c.close()
    eq(s.call("GET", "/sandboxes")[2], [])


def times(s):
    a = s.create(timeout=100)
    first = s.call("GET", "/sandboxes/" + a.id)[2]
    eq(s.call("GET", "/sandboxes/" + a.id)[2]["endAt"], first["endAt"])
    eq(s.call("POST", f"/sandboxes/{a.id}/refreshes", {"duration": 20})[0], 204)
    eq(s.call("POST", f"/sandboxes/{a.id}/connect", {"timeout": 20})[0], 200)
    eq(s.call("GET", "/sandboxes/" + a.id)[2]["endAt"], first["endAt"])
    eq(s.call("POST", f"/sandboxes/{a.id}/refreshes", {"duration": 3600})[0], 204)
    later = s.call("GET", "/sandboxes/" + a.id)[2]["endAt"]
    assert later > first["endAt"], later
    eq(s.call("POST", f"/sandboxes/{a.id}/connect", {})[0], 400)
    eq(s.call("POST", f"/v2/sandboxes/{a.id}/connect")[0], 200)
    # Now it ends by itself, and its streams with it.
    c, r = a.start("/bin/sleep", "100")
    read_message(r)
    eq(s.call("POST", f"/sandboxes/{a.id}/timeout", {"timeout": 1})[0], 204)
    try:
        rest = r.read()
        raise AssertionError(f"a clean end: {rest!r}")
    except (http.client.IncompleteRead, ConnectionError):
        pass
    c.close()
    wait_for(lambda: a.health() == 502)
    eq(s.call("GET", "/sandboxes/" + a.id)[0], 404)
    status, _, text = a.request("GET", "/health")
    eq(json.loads(text), {"sandboxId": a.id, "message": "The sandbox was not found", "code": 502})


def limits(program, uid):
    with Server(program, "--max", "3", uid=uid) as s:
        made = [s.create() for _ in range(3)]
        status, head, body = s.call("POST", "/sandboxes", {"templateID": "base"})
        eq(status, 429)
        assert "maximum number of concurrent" in body["message"] and "Retry-After" not in head
        made.pop().kill()
        made.append(s.create())
        for a in made:
            eq(a.kill(), 204)


def key_file(program, uid):
    with open("/tmp/rsb-test-key-%d" % os.getpid(), "w", encoding="utf-8") as f:
        f.write("e2b_beef\n")
    os.chmod(f.name, 0o644)
    try:
        with Server(program, "--api-key-file", f.name, uid=uid) as s:
            eq(s.call("GET", "/sandboxes")[0], 401)
            eq(s.call("GET", "/sandboxes", headers={"x-api-key": "e2b_beef"})[0], 200)
            assert "beef" not in s.text()
    finally:
        os.unlink(f.name)


def one_server_a_state(program, uid):
    with Server(program, uid=uid) as s:
        prefix = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
        second = subprocess.run(prefix + [program, "--state", s.state, *s.options], capture_output=True, text=True,
                                timeout=DEADLINE, check=False)
        eq((second.returncode, second.stderr), (1, f"rsb-local: another rsb-local is running on {s.state}\n"))
        eq(s.call("GET", "/health")[0], 204)


def bad_options(program, uid):
    for args, status in ((["--nope"], 2), (["--listen", "x"], 2), (["--disk", "1"], 2), (["--max", "0"], 2),
                         (["--max", "101"], 2), (["--idle", "x"], 2), (["extra"], 2), (["--help"], 0),
                         (["--version"], 0)):
        p = subprocess.run([program, *args], capture_output=True, text=True, timeout=DEADLINE, check=False)
        eq(p.returncode, status)
        assert p.stdout if status == 0 else p.stderr.startswith("rsb-local: ") or "rsb-local: " in p.stderr
    with Server(program, "--envd", "/nonexistent", uid=uid) as s:
        status, _, body = s.call("POST", "/sandboxes", {"templateID": "base"})
        eq((status, body["message"]), (500, "cannot run /nonexistent: No such file or directory"))


def idle_ends(program, uid):
    s = Server(program, "--idle", "1s", uid=uid)
    a = s.create()
    time.sleep(2)
    eq(s.child.poll(), None)
    a.kill()
    eq(s.child.wait(DEADLINE), 0)
    assert not os.path.exists(s.port_file)
    s.log.close()
    s.remove()


localcases.main(
    shared=[control_plane, create_is_checked, times],
    own=[limits, key_file, one_server_a_state, bad_options, idle_ends])
