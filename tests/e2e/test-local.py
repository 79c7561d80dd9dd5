#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: each function shows one promise; run as root and as a user.

usage: test-local.py PROGRAM [NAME...]
"""

import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from rsblocal import (DEADLINE, ENVD_PORT, KEY, Result, Sandbox, Server, envelope, envelopes, raw,
                      read_message, wait_for)

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


# ---- control plane ----

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
    for verb in ("pause", "fork", "snapshots"):
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


def limits(s):
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


# ---- envd: processes ----

def processes(s):
    a = s.create(envVars={"A": "create", "B": "create"})
    r = a.sh("echo out; echo err >&2; exit 7")
    eq((r.out, r.err, r.end), (b"out\n", b"err\n", {
        "exitCode": 7, "exited": True, "status": "exit status 7", "error": "exit status 7"}))
    assert r.finished and r.error is None and r.pid > 1
    eq(a.run("/bin/true").end, {"exited": True, "status": "exit status 0"})
    eq(a.sh("kill -9 $$").end,
       {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"})
    eq(a.sh("kill -TERM $$").end["status"], "signal: terminated")
    r = a.run("no-such-program")
    eq(r.code, 127)
    assert b"not found" in r.err
    eq(a.run("/etc/passwd").code, 126)
    eq(a.text("echo $A $B $HOME $USER; pwd", envs={"B": "call"}),
       "create call /home/user user\n/home/user\n")
    eq(a.text("env | cut -d= -f1 | sort | tr '\\n' ' '"), "A B HOME LOGNAME PATH PWD USER ")
    eq(a.text("pwd", user="root"), "/root\n")
    eq(a.text("pwd", cwd="/usr"), "/usr\n")
    eq(a.text("pwd", cwd="~"), "/home/user\n")
    r = a.sh("true", cwd="/nowhere")
    eq(r.error, {"code": "invalid_argument", "message": "cwd '/nowhere' does not exist"})
    eq(a.run("cat").out, b"")  # standard input is empty without the flag
    # All output arrives, however much, and before the end.
    r = a.sh("head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2")
    eq((len(r.out), len(r.err)), (3000000, 1000000))
    big = "x" * 131000
    eq(hashlib.sha1(a.run("/bin/echo", "-n", big).out).digest(),
       hashlib.sha1(big.encode()).digest())
    # A child that keeps the output delays the end.
    t = time.monotonic()
    r = a.sh("(sleep 0.5; echo late) & echo early")
    eq(r.out, b"early\nlate\n")
    assert time.monotonic() - t >= 0.5
    eq(a.text("id -un", user="root"), "root\n")
    status, _, text = a.request("POST", "/process.Process/List", b"{}",
                                a.headers(user="nobody-here", Content_Type="application/json"))
    eq((status, json.loads(text)["code"]), (401, "unauthenticated"))
    a.kill()


def start_is_prompt(s):
    a = s.create()
    c, r = a.start("/bin/sh", "-c", "echo one; sleep 1; echo two")
    t = time.monotonic()
    flag, m = read_message(r)
    assert "start" in m["event"]
    flag, m = read_message(r)
    eq(base64.b64decode(m["event"]["data"]["stdout"]), b"one\n")
    assert time.monotonic() - t < 0.9
    flag, m = read_message(r)
    eq(base64.b64decode(m["event"]["data"]["stdout"]), b"two\n")
    c.close()
    # Keep-alives while nothing happens.
    c, r = a.start("/bin/sleep", "3", headers={"Keepalive-Ping-Interval": "1"})
    read_message(r)
    eq(read_message(r), (0, {"event": {"keepalive": {}}}))
    c.close()
    a.kill()


def deadline_kills(s):
    a = s.create()
    t = time.monotonic()
    r = a.run("/bin/sleep", "50", headers={"Connect-Timeout-Ms": "500"})
    assert time.monotonic() - t < 10
    eq(r.error["code"], "deadline_exceeded")
    wait_for(lambda: a.rpc("List", {})[1] == {})
    assert "sleep" not in a.text("ps -eo args")
    a.kill()


def input_and_signals(s):
    a = s.create()
    c, r = a.start("/bin/cat", stdin=True)
    pid = read_message(r)[1]["event"]["start"]["pid"]
    eq(a.rpc("SendInput", {"process": {"pid": pid},
                           "input": {"stdin": base64.b64encode(b"hi\n").decode()}}), (200, {}))
    eq(base64.b64decode(read_message(r)[1]["event"]["data"]["stdout"]), b"hi\n")
    rows = a.rpc("List", {})[1]["processes"]
    eq([(p["pid"], p["config"]["cmd"]) for p in rows], [(pid, "/bin/cat")])
    eq(a.rpc("CloseStdin", {"process": {"pid": pid}}), (200, {}))
    rest = Result(envelopes(r.read()))
    eq(rest.code, 0)
    c.close()
    eq(a.rpc("CloseStdin", {"process": {"pid": pid}})[0], 200)
    status, body = a.rpc("SendInput", {"process": {"pid": pid}, "input": {"stdin": "aGk="}})
    eq((status, body["code"]), (500, "internal"))
    status, body = a.rpc("SendInput", {"process": {"pid": 99999}, "input": {"stdin": "aGk="}})
    eq((status, body), (404, {"code": "not_found", "message": "process with pid 99999 not found"}))
    c, r = a.start("/bin/sh", "-c", "sleep 100 & sleep 100")
    pid = read_message(r)[1]["event"]["start"]["pid"]
    eq(a.rpc("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGINT"})[0], 501)
    eq(a.rpc("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}), (200, {}))
    # Its child holds the output, which is not waited for after a kill.
    eq(Result(envelopes(r.read())).end["status"], "signal: killed")
    c.close()
    eq(a.rpc("SendSignal", {"process": {"pid": 99999}, "signal": "SIGNAL_SIGKILL"})[0], 404)
    a.kill()


def stream_input(s):
    """The deployer's way: a client stream, its messages cut anywhere, acting as they come."""
    a = s.create()
    c, r = a.start("/bin/cat", stdin=True, user="root")
    pid = read_message(r)[1]["event"]["start"]["pid"]
    data = envelope({"start": {"process": {"pid": pid}}}) + envelope({"keepalive": {}})
    data += b"".join(envelope({"data": {"input": {"stdin": base64.b64encode(b"%d," % i).decode()}}})
                     for i in range(100))
    k = socket.create_connection(("127.0.0.1", s.port), timeout=DEADLINE)
    head = a.headers(Content_Type="application/connect+json", Transfer_Encoding="chunked",
                     Host="localhost")
    k.sendall(b"POST /process.Process/StreamInput HTTP/1.1\r\n" +
              b"".join(f"{n}: {v}\r\n".encode() for n, v in head.items()) + b"\r\n")
    for at in range(0, len(data), 7):
        part = data[at:at + 7]
        k.sendall(b"%x\r\n%s\r\n" % (len(part), part))
    want = b"".join(b"%d," % i for i in range(100))
    got = b""
    while got != want:  # before the stream has ended
        got += base64.b64decode(read_message(r)[1]["event"]["data"]["stdout"])
    k.sendall(b"0\r\n\r\n")
    answer = http.client.HTTPResponse(k)
    answer.begin()
    eq(answer.status, 200)
    eq(list(envelopes(answer.read())), [(0, {}), (2, {})])
    k.close()
    a.rpc("CloseStdin", {"process": {"pid": pid}})
    c.close()
    a.kill()


def deploys(s):
    """A program goes up as root and runs with a key on its standard input."""
    a = s.create()
    size = os.path.getsize("/bin/busybox") if os.path.exists("/bin/busybox") else 0
    with open("/bin/busybox" if size else "/bin/dash", "rb") as f:
        program = f.read()
    status, rows = a.put("/opt/x/side", program)
    eq((status, rows), (200, [{"path": "/opt/x/side", "name": "side", "type": "file"}]))
    eq(a.sh("chmod 755 /opt/x/side", user="root").code, 0)
    args = ["sh", "-c"] if size else ["-c"]
    c, r = a.start("/opt/x/side", *args, "read k; echo got $k", stdin=True, user="root")
    pid = read_message(r)[1]["event"]["start"]["pid"]
    body = (envelope({"start": {"process": {"pid": pid}}}) +
            envelope({"data": {"input": {"stdin": base64.b64encode(b"secret\n").decode()}}}))
    status, _, text = a.request("POST", "/process.Process/StreamInput", body,
                                a.headers(Content_Type="application/connect+json"))
    eq((status, list(envelopes(text))[-1]), (200, (2, {})))
    eq(Result(envelopes(r.read())).out, b"got secret\n")
    c.close()
    assert "secret" not in s.text()
    a.kill()


def attach(s):
    a = s.create()
    c, r = a.start("/bin/sh", "-c", "read x; echo $x; exit 3", stdin=True)
    pid = read_message(r)[1]["event"]["start"]["pid"]
    k = s.connection()
    k.request("POST", "/process.Process/Connect", envelope({"process": {"pid": pid}}),
              a.headers(Content_Type="application/connect+json"))
    second = k.getresponse()
    read_message(second)
    # The one who started it leaves; it goes on.
    c.close()
    a.rpc("SendInput", {"process": {"pid": pid}, "input": {"stdin": "aGkK"}})
    rest = Result(envelopes(second.read()))
    eq((rest.out, rest.code), (b"hi\n", 3))
    k.close()
    k = s.connection()
    k.request("POST", "/process.Process/Connect", envelope({"process": {"pid": pid}}),
              a.headers(Content_Type="application/connect+json"))
    late = Result(envelopes(k.getresponse().read()))
    eq((late.pid, late.code), (pid, 3))
    k.close()
    a.kill()


def slow_reader(s):
    """A client that does not read stops the process, not the host's memory."""
    a = s.create()
    c, r = a.start("/bin/sh", "-c", "yes | head -c 200000000; echo done >&2")
    read_message(r)
    time.sleep(1)
    memory_is_bounded(s)
    rest = Result(envelopes(r.read()))
    eq((len(rest.out), rest.err), (200000000, b"done\n"))
    c.close()
    a.kill()


# ---- envd: files ----

def files(s):
    a = s.create()
    one = not multi_uid(a)
    eq(a.put("d/e.txt", b"hello", user="user"),
       (200, [{"path": "/home/user/d/e.txt", "name": "e.txt", "type": "file"}]))
    eq(a.text("stat -c '%U %a' d/e.txt d"), "root 644\nroot 755\n" if one else "user 644\nuser 755\n")
    # In place, for other links see it; the mode stays.
    a.text("ln d/e.txt link; chmod 700 d/e.txt")
    a.put("d/e.txt", b"hi", user="user")
    eq(a.text("cat link; stat -c %a link"), "hi700\n")
    status, head, text = a.request("GET", "/files?path=d/e.txt")
    eq((status, text, head["Content-Length"]), (200, b"hi", "2"))
    eq(a.request("GET", "/files?path=nothing")[0], 404)
    eq(a.request("GET", "/files?path=/usr")[0], 400)
    eq(a.put("/usr", b"x")[0], 400)
    eq(a.request("GET", "/files?path=x&username=nobody-here")[0], 401)
    a.text("mkfifo pipe; printf 0123456789 > ten; : > empty")
    eq(a.request("GET", "/files?path=pipe")[0], 400)
    eq(a.put("pipe", b"x", user="user")[0], 500)
    eq(a.request("GET", "/files?path=empty")[::2], (200, b""))
    assert b"VmRSS" in a.request("GET", "/files?path=/proc/self/status")[2]
    for value, want in (("bytes=2-4", (206, b"234")), ("bytes=7-", (206, b"789")),
                        ("bytes=-3", (206, b"789")), ("bytes=3-99", (206, b"3456789")),
                        ("bytes=10-", (416, b"")), ("lines=1-2", (200, b"0123456789"))):
        eq(a.request("GET", "/files?path=ten", headers=a.headers(Range=value))[::2], want)
    # A name with everything that a query can carry.
    eq(a.put("a%20%26%2Bb%C3%A9", b"1", user="user")[1][0]["name"], "a &+bé")
    eq(a.text("ls 'a &+bé'"), "a &+bé\n")
    a.kill()


def chunked_upload(s):
    a = s.create()
    block = os.urandom(65536)

    def parts():
        for _ in range(320):
            yield block

    status, _, text = a.request("POST", "/files?path=big", parts(),
                                a.headers(Content_Type="application/octet-stream",
                                          Transfer_Encoding="chunked"), chunked=True)
    eq((status, json.loads(text)[0]["name"]), (200, "big"))
    want = hashlib.sha256(block * 320).hexdigest()
    eq(a.text("sha256sum big").split()[0], want)
    eq(hashlib.sha256(a.request("GET", "/files?path=big")[2]).hexdigest(), want)
    a.kill()


def compressed_upload(s):
    a = s.create()
    data = b"some text, again and again\n" * 20000

    def post(body, encoding, path="packed"):
        head = a.headers(Content_Type="application/octet-stream", Content_Encoding=encoding)
        return a.request("POST", f"/files?path={path}&username=user", body, head)[0]

    packed = gzip.compress(data)
    eq(post(packed, "gzip"), 200)
    eq(a.request("GET", "/files?path=packed")[2], data)
    eq(post(packed + packed, "gzip"), 200)
    eq(a.request("GET", "/files?path=packed")[2], data + data)
    for body in (packed[:-1], packed[:-9] + bytes(9), data, b""):
        eq(post(body, "gzip"), 400)
    eq(post(data, "identity"), 200)
    for encoding in ("br", "gzip, gzip", "zstd"):
        eq(post(packed, encoding), 400)
    eq(a.request("GET", "/files?path=packed")[2], data)
    # A body that unpacks to very much takes no memory, and what cannot be written is refused.
    eq(post(gzip.compress(bytes(64 << 20)), "gzip", "zeros"), 200)
    eq(a.text("wc -c < zeros; rm zeros"), f"{64 << 20}\n")
    eq(post(packed, "gzip", "/proc/version"), 500)
    a.kill()


def multipart(s):
    a = s.create()

    def body(*parts):
        text = b""
        for name, filename, data in parts:
            text += (f'--BB\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"'
                     "\r\nContent-Type: application/octet-stream\r\n\r\n").encode() + data + b"\r\n"
        return text + b"--BB--\r\n"

    def post(query, text):
        status, _, answer = a.request("POST", "/files?" + query, text,
                                      a.headers(Content_Type="multipart/form-data; boundary=BB"))
        return status, json.loads(answer)

    blob = os.urandom(300000) + b"\r\n--C\r\n"
    status, rows = post("username=user", body(("file", "m1", blob), ("other", "no", b"no"),
                                              ("file", "d/m2", b""), ("file", "m3", b"three")))
    eq((status, rows if status != 200 else [r["path"] for r in rows]),
       (200, ["/home/user/m1", "/home/user/d/m2", "/home/user/m3"]))
    eq(a.text("sha1sum < m1; wc -c < d/m2; cat m3; ls"),
       hashlib.sha1(blob).hexdigest() + "  -\n0\nthreed\nm1\nm3\n")
    # However the body is cut.
    whole = body(("file", "c1", b"1"), ("file", "c2", b""), ("file", "c3", b"333"))
    for at in range(1, len(whole), 5):
        status, _, text = a.request(
            "POST", "/files?username=user", iter([whole[:at], whole[at:]]),
            a.headers(Content_Type="multipart/form-data; boundary=BB", Transfer_Encoding="chunked"),
            chunked=True)
        eq((status, len(json.loads(text))), (200, 3))
    eq(a.text("cat c1 c2 c3; rm c1 c2 c3"), "1333")
    eq(post("path=named", body(("file", "ignored", b"x")))[1][0]["name"], "named")
    eq(post("username=user", body(("file", "q", b"1"), ("file", "q", b"2")))[0], 400)
    a.kill()


def init_call(s):
    """The host's own call: refused from outside, guarded by the token inside."""
    a = s.create()
    eq(a.request("POST", "/init", b"{}")[0], 404)
    script = ("import http.client,sys,json\n"
              "c=http.client.HTTPConnection('127.0.0.1',49983)\n"
              "h={'X-Access-Token':sys.argv[1]} if sys.argv[1] else {}\n"
              "c.request('POST','/init',sys.argv[2],h)\n"
              "r=c.getresponse();print(r.status,r.getheader('X-Envd-Version'))")
    eq(a.run("python3", "-c", script, "", '{"envVars":{"N":"1"}}').out, b"401 None\n")
    eq(a.run("python3", "-c", script, "wrong", '{"envVars":{"N":"1"}}').out, b"401 None\n")
    eq(a.text("echo .$N."), "..\n")
    out = a.run("python3", "-c", script, a.token,
                '{"envVars":{"N":"1"},"defaultUser":"root","defaultWorkdir":"/usr"}').out
    assert re.match(rb"204 \d", out), out
    eq(a.text("echo $N; id -un; pwd"), "1\nroot\n/usr\n")
    eq(json.loads(a.request("GET", "/envs")[2]), {"N": "1"})
    a.kill()


def tokens(s):
    a = s.create()
    b = s.create(secure=False)
    eq(b.token, None)
    eq(b.text("echo open"), "open\n")
    for token in (None, "", "0" * 64, a.token[:-1], a.token + "0"):
        head = a.headers(Content_Type="application/json")
        del head["X-Access-Token"]
        if token is not None:
            head["X-Access-Token"] = token
        status, _, text = a.request("POST", "/process.Process/List", b"{}", head)
        eq((status, json.loads(text)["code"]), (401, 401))
        eq(a.request("GET", "/files?path=/etc/passwd", headers=head)[0], 401)
        eq(a.request("POST", "/files?path=/x", b"x", head)[0], 401)
        eq(a.request("GET", "/health", headers=head)[0], 204)

    def signed(path, operation, until=""):
        text = f"{path}:{operation}::{a.token}" + (f":{until}" if until else "")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        query = "v1_" + digest.replace("+", "%2B").replace("/", "%2F")
        return f"/files?path={path}&signature={query}" + (
            f"&signature_expiration={until}" if until else "")

    bare = {"E2b-Sandbox-Id": a.id, "E2b-Sandbox-Port": str(ENVD_PORT)}
    eq(a.request("GET", signed("/etc/hostname", "read"), headers=bare)[0], 200)
    eq(a.request("GET", signed("/etc/hostname", "write"), headers=bare)[0], 401)
    eq(a.request("GET", signed("/etc/hostname", "read", "9999999999"), headers=bare)[0], 200)
    status, _, text = a.request("GET", signed("/etc/hostname", "read", "1000"), headers=bare)
    eq((status, json.loads(text)["message"]), (401, "signature is already expired"))
    assert a.token not in s.text() and "v1_" not in s.text()
    a.kill()
    b.kill()


# ---- ports ----

ECHO_SERVER = r"""
import hashlib, base64, socket, sys, threading
l = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
def serve(c):
    head = b""
    while b"\r\n\r\n" not in head:
        part = c.recv(65536)
        if not part:
            return
        head += part
    head, rest = head.split(b"\r\n\r\n", 1)
    if b"GET /refuse " in head:
        c.sendall(b"HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: 4\r\n\r\nnope"); c.close(); return
    if b"GET /garbage " in head:
        c.sendall(b"\x00\xff\r\n\r\n"); c.close(); return
    key = [l.split(b": ")[1] for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")]
    accept = base64.b64encode(hashlib.sha1(key[0] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\nearly:" + rest)
    while True:
        part = c.recv(65536)
        if not part:
            break
        c.sendall(part)
    c.sendall(b"bye")
    c.close()
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"""


def serve_inside(a, source, *args):
    c, r = a.start("python3", "-u", "-c", source, *args)
    read_message(r)
    said = b""
    while said != b"ready\n":
        said += base64.b64decode(read_message(r)[1]["event"]["data"]["stdout"])
    return c


def upgrade(s, a, port, path="/", early=b"", host=None):
    k = socket.create_connection(("127.0.0.1", s.port), timeout=DEADLINE)
    route = f"Host: {host}\r\n" if host else (
        f"Host: localhost\r\nE2b-Sandbox-Id: {a.id}\r\nE2b-Sandbox-Port: {port}\r\n")
    k.sendall((f"GET {path} HTTP/1.1\r\n{route}Connection: keep-alive, Upgrade\r\n"
               "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode() + early)
    head = b""
    while b"\r\n\r\n" not in head:
        part = k.recv(1)
        assert part, head
        head += part
    return k, head


def read_exactly(k, n):
    data = b""
    while len(data) < n:
        part = k.recv(n - len(data))
        assert part, data
        data += part
    return data


def tunnels(s):
    a = s.create()
    keep = serve_inside(a, ECHO_SERVER, "8080")
    k, head = upgrade(s, a, 8080)
    assert head.startswith(b"HTTP/1.1 101 "), head
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
    eq(read_exactly(k, 6), b"early:")
    blob = os.urandom(4 << 20)
    threading.Thread(target=k.sendall, args=(blob,), daemon=True).start()
    eq(hashlib.sha1(read_exactly(k, len(blob))).digest(), hashlib.sha1(blob).digest())
    # Small messages are not held back.
    t = time.monotonic()
    for _ in range(100):
        k.sendall(b"x")
        eq(k.recv(1), b"x")
    assert time.monotonic() - t < 2
    k.shutdown(socket.SHUT_WR)
    eq(read_exactly(k, 3), b"bye")
    eq(k.recv(1), b"")
    k.close()
    # By host name, as without the headers.
    k, head = upgrade(s, a, 8080, host=f"8080-{a.id}.sb.test:99")
    assert head.startswith(b"HTTP/1.1 101 "), head
    many = [upgrade(s, a, 8080)[0] for _ in range(20)]
    for m in many:
        m.sendall(b"m")
        eq(read_exactly(m, 7), b"early:m")
    k2, head = upgrade(s, a, 8080, "/refuse")
    assert head.startswith(b"HTTP/1.1 403 ") and b"X-Why: no" in head, head
    eq(read_exactly(k2, 4), b"nope")
    k2, head = upgrade(s, a, 8080, "/garbage")
    assert head.startswith(b"HTTP/1.1 502 "), head
    k2, head = upgrade(s, a, 81)
    assert head.startswith(b"HTTP/1.1 502 "), head
    # A kill cuts them.
    a.kill()
    for m in many + [k]:
        assert m.recv(100) in (b"", b"early:"), m
        m.close()
    keep.close()


HTTP_SERVER = r"""
import http.server, sys, time, json
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_GET(self):
        if self.path == "/slow":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for i in range(3):
                self.wfile.write(b"2\r\n%d\n\r\n" % i); self.wfile.flush(); time.sleep(0.4)
            self.wfile.write(b"0\r\n\r\n"); return
        if self.path == "/cut":
            self.send_response(200); self.send_header("Content-Length", "100"); self.end_headers()
            self.wfile.write(b"short"); self.wfile.flush(); self.connection.shutdown(2)
            self.close_connection = True; return
        if self.path == "/big":
            self.send_response(200); self.send_header("Content-Length", str(64 << 20)); self.end_headers()
            for i in range(64): self.wfile.write(b"b" * (1 << 20))
            return
        data = json.dumps({"path": self.path, "headers": self.headers.items()}).encode()
        self.send_response(418); self.send_header("X-Mine", "1"); self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2"); self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(data)
    do_HEAD = do_DELETE = do_GET
    def do_POST(self):
        n = 0
        if self.headers.get("Transfer-Encoding"):
            while True:
                size = int(self.rfile.readline(), 16)
                n += len(self.rfile.read(size)); self.rfile.readline()
                if not size: break
        else:
            n = len(self.rfile.read(int(self.headers["Content-Length"])))
        data = str(n).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    do_PUT = do_POST
s = http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[1])), H)
print("ready", flush=True)
s.serve_forever()
"""


def ports(s):
    a = s.create()
    status, _, text = a.request("GET", "/", port=3000, headers=a.headers(3000))
    eq((status, json.loads(text)), (502, {
        "sandboxId": a.id, "message": "The sandbox is running but port is not open", "port": 3000,
        "code": 502}))
    keep = serve_inside(a, HTTP_SERVER, "3000", "127.0.0.1")
    status, head, text = a.request("GET", "/a%2Fb?c=%20d&e", headers=a.headers(3000, X_One="1"))
    eq((status, head["X-Mine"], head.get_all("Set-Cookie")), (418, "1", ["a=1", "b=2"]))
    seen = json.loads(text)
    eq(seen["path"], "/a%2Fb?c=%20d&e")
    names = {n.lower(): v for n, v in seen["headers"]}
    eq((names["x-one"], names["host"]), ("1", f"127.0.0.1:{s.port}"))
    assert "user-agent" not in names and "accept" not in names, names
    status, head, text = a.request("HEAD", "/", headers=a.headers(3000))
    eq((status, text), (418, b""))
    eq(a.request("DELETE", "/", headers=a.headers(3000))[0], 418)
    eq(a.request("POST", "/", b"x" * 5000000, a.headers(3000))[2], b"5000000")
    eq(a.request("PUT", "/", iter([b"x" * 1000] * 1000), a.headers(3000, Transfer_Encoding="chunked"),
                 chunked=True)[2], b"1000000")
    c = s.connection()
    c.request("GET", "/slow", headers=a.headers(3000))
    r = c.getresponse()
    t = time.monotonic()
    eq(r.read(2), b"0\n")
    assert time.monotonic() - t < 0.3
    eq(r.read(), b"1\n2\n")
    # The connection is good for more.
    c.request("GET", "/again", headers=a.headers(3000))
    eq(c.getresponse().status, 418)
    c.close()
    c = s.connection()
    c.request("GET", "/cut", headers=a.headers(3000))
    try:
        c.getresponse().read()
        raise AssertionError("a cut body looked whole")
    except http.client.IncompleteRead:
        pass
    c.close()
    c = s.connection()
    c.request("GET", "/big", headers=a.headers(3000))
    r = c.getresponse()
    time.sleep(0.5)
    memory_is_bounded(s)
    eq(len(r.read()), 64 << 20)
    c.close()
    # IPv6 alone is found as well.
    keep6 = serve_inside(a, HTTP_SERVER.replace("s = http", "import socket\nhttp.server.Thread"
                         "ingHTTPServer.address_family = socket.AF_INET6\ns = http"), "3001", "::1")
    eq(a.request("GET", "/", headers=a.headers(3001))[0], 418)
    keep.close()
    keep6.close()
    a.kill()


def routing(s):
    a = s.create()
    one = {"Host": "localhost", "E2b-Sandbox-Id": a.id}
    status, _, text = a.request("GET", "/health", headers=one)
    eq((status, text), (400, b"missing header\n"))
    for host, want in ((f"{ENVD_PORT}-{a.id}.sb.test", 204), (f"{ENVD_PORT}-{a.id}-x.sb.test", 204),
                       (f"x-{a.id}.sb.test", 400), (f"0-{a.id}.sb.test", 400),
                       ("80-NO_ID.sb.test", 400), ("80-unknown.sb.test", 502)):
        eq(a.request("GET", "/health", headers={"Host": host})[0], want)
    # Elsewhere the headers mean nothing: this is the control plane.
    eq(a.request("GET", "/sandboxes", headers={"Host": "api.sb.test", **a.headers(), **KEY})[0], 200)
    eq(a.request("GET", "/health", headers={"Host": "sandbox.sb.test", **a.headers()})[0], 204)
    eq(a.request("GET", "/health", headers={"Host": "[::1]:1", **a.headers()})[0], 204)
    eq(a.request("GET", "/health", headers=a.headers(port="49983x"))[0], 400)
    eq(a.request("GET", "/health", headers=a.headers(port=65536))[0], 400)
    eq(a.request("GET", "/health", headers={**a.headers(), "E2b-Sandbox-Id": "../x"})[0], 400)
    a.kill()


def hostile_requests(s):
    a = s.create()
    base = f"Host: localhost\r\nE2b-Sandbox-Id: {a.id}\r\nE2b-Sandbox-Port: {ENVD_PORT}\r\n".encode()
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n",
                 b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: " + b"a" * 300 + b"\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100000 + b"\r\n",
                 b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"POST /files HTTP/1.1\r\n" + base + b"Content-Length: -1\r\n\r\n",
                 b"POST /files HTTP/1.1\r\n" + base + b"Content-Length: 99999999999999999999999\r\n\r\n",
                 b"POST /sandboxes HTTP/1.1\r\nHost: localhost\r\nX-API-Key: k\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"):
        answer = raw(s, data, timeout=2)
        assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 502")), (data[:60], answer[:200])
    token = f"X-Access-Token: {a.token}\r\nContent-Type: application/connect+json\r\n".encode()
    for body in (b"", b"\x00", b"\x00\xff\xff\xff\xff", b"\x01\x00\x00\x00\x02{}", b"\x00\x00\x00\x00\x02[]",
                 b"\x00\x00\x00\x00\x03{x}", b"\x00\x00\x00\x00\x0e" + b'{"process":{}}',
                 b"\x00\x00\x00\x00\x02{}" * 3, b"\x00\x00\x00\x00\x20" + b"[" * 32):
        answer = raw(s, b"POST /process.Process/Start HTTP/1.1\r\n" + base + token +
                     b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert b"invalid_argument" in answer, (body, answer)
    # A body over the limit of a call is refused, not kept.
    c = s.connection()
    try:
        c.request("POST", "/sandboxes", b" " * (8 << 20), KEY)
        eq(c.getresponse().status, 413)
    except ConnectionError:
        pass
    c.close()
    eq(a.text("echo alive"), "alive\n")
    a.kill()


# ---- the wall ----

def multi_uid(a):
    return a.text("wc -l < /proc/self/uid_map; awk '{print $3}' /proc/self/uid_map").split()[1] != "1"


def nothing_of_the_host(s):
    marker = f"/tmp/rsb-secret-{os.getpid()}"
    with open(marker, "w", encoding="utf-8") as f:
        f.write("secret")
    hidden = socket.socket(socket.AF_UNIX)
    hidden.bind(f"\0rsb-abstract-{os.getpid()}")
    hidden.listen()
    sleeper = subprocess.Popen(["sleep", "987"])
    try:
        a = s.create()
        for user in ("user", "root"):
            assert "987" not in a.text("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", user=user)
            eq(a.text("ls -A /tmp /run /home | grep -v lock | sort -u", user=user)
               .split(), ["/home:", "/run:", "/tmp:", "user"])
            eq(a.sh("ls -A /root", user=user).out, b"")
            r = a.sh(f"cat {marker} /etc/shadow /etc/gshadow /etc/ssh/* /etc/ssl/private/*", user=user)
            eq(r.out, b"")
            eq(a.sh("ls -A /etc/ssh /etc/ssl/private /var/lib/docker /boot /srv/*", user=user).out, b"")
            eq(a.run("python3", "-c", "import socket;s=socket.socket(socket.AF_UNIX);"
                     f"s.connect('\\0rsb-abstract-{os.getpid()}')", user=user).code, 1)
            eq(a.text("cat /proc/net/unix | grep -c rsb-abstract || true", user=user), "0\n")
            # No network but its own loopback.
            eq(a.text("ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev", user=user), "1\n")
            for host in ("127.0.0.1", "10.0.2.2", "1.1.1.1"):
                r = a.run("python3", "-c", f"import socket;socket.create_connection(('{host}',"
                          f"{s.port}),3)", user=user)
                eq(r.code, 1)
        boot = a.text("cat /proc/sys/kernel/random/boot_id")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            assert boot != f.read()
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n", boot)
        eq(a.text("cat /proc/sys/kernel/random/boot_id"), boot)
        eq(a.text("hostname").strip(), a.id)
        b = s.create()
        assert b.text("cat /proc/sys/kernel/random/boot_id") != boot
        # No host uid 0 in the map when the host side is root.
        if s.uid is None:
            maps = a.text("cat /proc/self/uid_map /proc/self/gid_map").split()
            assert maps[0] == "0" and int(maps[1]) >= 524288 and maps[2] == "65536", maps
            assert maps[1] != b.text("cat /proc/self/uid_map").split()[1]
        b.kill()
        a.kill()
    finally:
        sleeper.kill()
        sleeper.wait()
        hidden.close()
        os.unlink(marker)


ESCAPES = r"""
mknod /tmp/disk b 254 0 2>/dev/null && head -c 1 /tmp/disk && echo BAD mknod
mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem && echo BAD mem
umount -l /usr 2>/dev/null && echo BAD umount
umount -l /proc/sys/kernel/random/boot_id 2>/dev/null
mount -o remount,rw,bind /usr 2>/dev/null
for p in /proc/[0-9]*; do
	for f in $(ls $p/root/ 2>/dev/null); do case $f in work|lost+found|boot|vmlinuz*) echo BAD root $p $f;; esac; done
	ls -d $p/root/var/lib/dpkg 2>/dev/null
done
mount -t devtmpfs x /mnt 2>/dev/null && echo BAD devtmpfs
mount -t ext4 /dev/vda /mnt 2>/dev/null && echo BAD ext4
mount -t sysfs x /mnt 2>/dev/null && echo 1 2>/dev/null > /mnt/power/state && echo BAD sysfs
echo 1 2>/dev/null > /proc/sysrq-trigger && echo BAD sysrq
echo x 2>/dev/null > /proc/sys/kernel/core_pattern && echo BAD core_pattern
echo x 2>/dev/null > /proc/sys/kernel/hostname
true 2>/dev/null < /proc/kcore && echo BAD kcore
true 2>/dev/null >> /proc/1/exe && echo BAD exe
unshare -r -m sh -c 'umount -l /usr' 2>/dev/null && echo BAD unshare
nsenter -t 1 -m ls /work 2>/dev/null && echo BAD nsenter
ls -A /proc/1/cwd/../../.. 2>/dev/null | grep -q work && echo BAD cwd
kill -9 1 2>/dev/null
echo end
"""


def root_stays_inside(s):
    a = s.create()
    probe = "/usr/bin/env"
    before = os.stat(probe)
    r = a.sh(ESCAPES, user="root")
    eq(r.out, b"end\n")
    if s.uid is None:
        # It may change its own /usr, which is not the host's.
        a.text("echo changed > /usr/bin/env; rm -rf /usr/share/doc; mkdir /usr/mine; "
               "chmod 700 /usr/lib; mv /usr/include /usr/moved; cat /usr/bin/env | grep changed",
               user="root")
        eq(a.text("stat -c '%u %g' /usr /usr/bin /bin/ls", user="root"), "0 0\n0 0\n0 0\n")
    else:
        eq(a.sh("echo changed > /usr/bin/env", user="root").code != 0, True)
        eq(a.text("echo '#!/bin/sh' > /usr/local/bin/mine; chmod 755 /usr/local/bin/mine; mine; "
                  "echo ok", user="root"), "ok\n")
        assert not os.path.exists("/usr/local/bin/mine")
    after = os.stat(probe)
    eq((before.st_size, before.st_mtime_ns), (after.st_size, after.st_mtime_ns))
    assert not os.path.exists("/usr/mine") and os.path.isdir("/usr/include")
    # A stopped or traced pid 1 does not keep the host from its end.
    c, r = a.start("python3", "-c", "import ctypes,os,time; l=ctypes.CDLL(None); os.kill(1,19); "
                   "print(l.ptrace(16,1,0,0),flush=True); time.sleep(100)", user="root")
    read_message(r)
    eq(a.kill(), 204)
    c.close()


def user_is_no_root(s):
    a = s.create()
    if not multi_uid(a):
        return "one uid"
    eq(a.text("id"), "uid=1000(user) gid=1000(user) groups=1000(user),27(sudo)\n")
    for script in ("touch /etc/x", "touch /usr/x", "cat /etc/sudoers", "ls /root", "kill -9 1",
                   "mount -t tmpfs x /mnt", "chown root /home/user"):
        eq(a.sh(script).code != 0, True)
    a.kill()
    return None


def dev_works(s):
    a = s.create()
    eq(a.text("echo x > /dev/null; head -c 4 /dev/zero | od -An -c | tr -d ' '; head -c 9 /dev/urandom | wc -c;"
              " echo hi > /dev/shm/f; cat /dev/shm/f; cat /dev/fd/0 < /dev/null; "
              "python3 -c 'import os,pty;m,s=pty.openpty();print(os.ttyname(s)[:9])'; ls -l /dev/ptmx | wc -l"),
       "\\0\\0\\0\\0\n9\nhi\n/dev/pts/\n1\n")
    eq(a.text("nproc >/dev/null; getent passwd user; df / >/dev/null; date >/dev/null; ldconfig -p | wc -l")
       .split("\n")[0].split(":")[0], "user")
    a.kill()


def orphans_are_reaped(s):
    a = s.create()
    a.text("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05' &) ; done")
    wait_for(lambda: "Z" not in a.text("ps -eo stat=").split() and "sleep" not in a.text("ps -eo comm="))
    assert not re.search(r"^Z", a.text("ps -eo stat="), re.M)
    a.kill()


def disk_is_limited(program, uid):
    with Server(program, "--disk", "64M", uid=uid) as s:
        s.uid = uid
        a = s.create()
        size = int(a.text("df --output=size -k / | tail -1"))
        assert 50000 < size <= 65536, size
        r = a.sh("dd if=/dev/zero of=/home/user/big bs=1M count=100")
        assert r.code != 0 and b"No space" in r.err
        eq(a.put("/home/user/more", b"x" * 4000000)[0], 507)
        a.text("rm /home/user/big")
        eq(a.put("/home/user/more", b"x" * 4000000)[0], 200)
        if uid is None:
            eq(a.text("stat -f -c %T /home", user="root").strip(), "ext2/ext3")
        a.kill()
        wait_for(lambda: s.state not in subprocess.run(["losetup", "-a"], capture_output=True, text=True,
                                                       check=False).stdout)


def without_idmapped_mounts(program, uid):
    """The rung below: system directories read-only, and nothing else is different."""
    with Server(program, "--no-idmap", uid=uid) as s:
        s.uid = uid
        a = s.create()
        eq(a.sh("touch /usr/x", user="root").code != 0, True)
        eq(a.sh("echo x > /usr/bin/env", user="root").code != 0, True)
        eq(a.text("stat -c %U /usr; touch /etc/x /root/x /var/lib/x; python3 -c 'print(1)'", user="root"),
           "nobody\n1\n")
        eq(a.text("touch /usr/local/bin/mine && echo ok", user="root"), "ok\n")
        eq(a.sh(ESCAPES, user="root").out, b"end\n")
        a.kill()
        nothing_of_the_host(s)


def many_at_once(program, uid):
    with Server(program, "--disk", "32M", uid=uid) as s:
        made, errors = [], []

        def one():
            try:
                made.append(s.create())
            except AssertionError as e:
                errors.append(e)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        eq(errors, [])
        eq(len({a.text("cat /proc/sys/kernel/random/boot_id; hostname") for a in made}), 8)
        for a in made:
            eq(a.kill(), 204)


# ---- the end ----

def descendants(pid):
    rows = [line.split() for line in subprocess.run(
        ["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.splitlines()]
    found, more = set(), {pid}
    while more:
        found |= more
        more = {int(p) for p, pp in rows if int(pp) in more} - found
    return found - {pid}


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
    if s.uid is None:
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


def stop_leaves_nothing(program, uid):
    for sig, status in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)):
        s = Server(program, "--disk", "32M", uid=uid)
        s.uid = uid
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
    s.uid = uid
    a = s.create()
    time.sleep(2)
    eq(s.child.poll(), None)
    a.kill()
    eq(s.child.wait(DEADLINE), 0)
    assert not os.path.exists(s.port_file)
    s.log.close()
    s.remove()


SHARED = [control_plane, create_is_checked, times, processes, start_is_prompt, deadline_kills,
          input_and_signals, stream_input, deploys, attach, slow_reader, files, chunked_upload, compressed_upload, multipart,
          init_call, tokens, tunnels, ports, routing, hostile_requests, nothing_of_the_host,
          root_stays_inside, user_is_no_root, dev_works, orphans_are_reaped, kill_leaves_nothing]
OWN = [key_file, disk_is_limited, without_idmapped_mounts, many_at_once, stop_leaves_nothing, one_server_a_state, bad_options, idle_ends]


def run_all(program, uid, names):
    failed = 0
    who = "root" if uid is None else "user"
    server = None

    def report(name, fn, *args):
        nonlocal failed
        t = time.monotonic()
        try:
            note = fn(*args)
            print(f"ok - {who}: {name} ({time.monotonic() - t:.2f} s{', ' + note if note else ''})", flush=True)
        except Exception as e:  # every case gets its turn
            failed += 1
            import traceback
            traceback.print_exc()
            print(f"not ok - {who}: {name}: {type(e).__name__}: {str(e)[:2000]}", flush=True)

    def limited(_):
        with Server(program, "--max", "3", uid=uid) as own:
            own.uid = uid
            limits(own)

    try:
        for fn in SHARED:
            if names and fn.__name__ not in names:
                continue
            if server is None or server.child.poll() is not None:
                server = Server(program, uid=uid)
                server.uid = uid
            report(fn.__name__, fn, server)
    finally:
        if server:
            text = server.text()
            if server.stop() != 0:
                failed += 1
                print("not ok - rsb-local did not end well:", text[-4000:])
            server.remove()
    if not names or "limits" in names:
        report("limits", limited, None)
    for fn in OWN:
        if not names or fn.__name__ in names:
            report(fn.__name__, fn, program, uid)
    return failed


def main():
    program = os.path.abspath(sys.argv[1])
    names = sys.argv[2:]
    who = os.environ.get("RSB_TEST_AS", "both" if os.geteuid() == 0 else "user")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        print("setpriv is missing")
        return SKIP
    failed = 0
    if who in ("both", "root"):
        failed += run_all(program, None, names)
    if who in ("both", "user"):
        failed += run_all(program, USER if os.geteuid() == 0 else None, names)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
