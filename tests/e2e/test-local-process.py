# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: processes in a sandbox, their streams and signals. Usage: see localcases.py."""

import base64
import hashlib
import http.client
import json
import os
import re
import socket
import time

import localcases
from localcases import eq, memory_is_bounded
from rsblocal import DEADLINE, Result, envelope, envelopes, read_message, wait_for


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


def orphans_are_reaped(s):
    a = s.create()
    a.text("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.05' &) ; done")
    wait_for(lambda: "Z" not in a.text("ps -eo stat=").split() and "sleep" not in a.text("ps -eo comm="))
    assert not re.search(r"^Z", a.text("ps -eo stat="), re.M)
    a.kill()


localcases.main(
    shared=[processes, start_is_prompt, deadline_kills, input_and_signals, stream_input, deploys, attach, slow_reader, orphans_are_reaped],
    own=[])
