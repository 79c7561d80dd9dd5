# SPDX-License-Identifier: MIT
"""rsb-local and rsb-envd end to end: files, the host's own call, tokens. Usage: see localcases.py."""

import base64
import gzip
import hashlib
import json
import os
import re

import localcases
from localcases import eq, multi_uid
from rsblocal import ENVD_PORT


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
    eq(a.put("pipe", b"x", user="user")[0], 400)
    eq(a.request("GET", "/files?path=empty")[::2], (200, b""))
    assert b"VmRSS" in a.request("GET", "/files?path=/proc/self/status")[2]
    for value, want in (("bytes=2-4", (206, b"234")), ("bytes=7-", (206, b"789")),
                        ("bytes=-3", (206, b"789")), ("bytes=3-99", (206, b"3456789")),
                        ("bytes=10-", (416, b"")), ("lines=1-2", (200, b"0123456789"))):
        eq(a.request("GET", "/files?path=ten", headers=a.headers(Range=value))[::2], want)
    # A name with everything that a query can carry.
    eq(a.put("a%20%26%2Bb%C3%A9", b"1", user="user")[1][0]["name"], "a &+bé")
    eq(a.text("ls 'a &+bé'"), "a &+bé\n")
    # JSON has no words for this one; it is made all the same.
    eq(a.put("u%C3%A9%FF%C0%AF%ED%A0%80", b"1", user="user"),
       (200, [{"path": "/home/user/ué" + 6 * "\ufffd", "name": "ué" + 6 * "\ufffd", "type": "file"}]))
    eq(a.text("ls u* | od -An -c | tr -d ' \\n'"), "u303251377300257355240200\\n")
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


def odd_paths(s):
    """Whatever a path leads to, there is an answer, and the agent goes on."""
    a = s.create()
    for path, want in (("/", (400, 400)), ("", (400, 400)), ("..", (400, 400)), ("/dev/null", (400, 400)),
                       ("/proc/1/mem", (500, None)), ("a%00b", (400, 400)), ("/etc/passwd/x", (500, 404)),
                       ("x/" * 2500, (400, 400)), ("y" * 300, (500, 500)), ("/proc/self/fd/1", (400, 400)),
                       ("~root/x", (400, 400)), ("/proc/sys/kernel/core_pattern", (500, 200)),
                       ("/tmp/../../../../tmp/odd", (200, 200)), ("//tmp//odd", (200, 200)), ("a%0ab", (200, 200))):
        for user in ("user", "root"):
            query = f"/files?path={path}&username={user}"
            status = a.request("POST", query, b"x", a.headers(Content_Type="application/octet-stream"))[0]
            eq((path, status), (path, want[0]))
            if want[1]:
                eq((path, a.request("GET", query)[0]), (path, want[1]))
            eq(a.request("GET", "/health")[0], 204)
    a.kill()


localcases.main(
    shared=[files, chunked_upload, compressed_upload, odd_paths, multipart, init_call, tokens],
    own=[])
