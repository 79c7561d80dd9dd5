# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: ports of a sandbox, upgrades, routing, requests that are no good. Usage: see localcases.py."""

import base64
import hashlib
import http.client
import json
import os
import socket
import threading
import time

import localcases
from localcases import eq, memory_is_bounded
from rsblocal import DEADLINE, ENVD_PORT, KEY, raw, read_message


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


localcases.main(
    shared=[tunnels, ports, routing, hostile_requests],
    own=[])
