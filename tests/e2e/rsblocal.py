# SPDX-License-Identifier: MIT
"""A client for the tests of rsb-local: the server as a child, its calls, and envd's."""

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import sanitizer

ENVD_PORT = 49983
KEY = {"X-API-Key": "e2b_00"}
DEADLINE = 20


class Server:
    """rsb-local on a port of its own, with a state directory that dies with it."""

    def __init__(self, program, *options, uid=None):
        self.dir = tempfile.mkdtemp(prefix="rsb-e2e-")
        self.program = program
        self.uid = uid
        self.by_root = uid is None and os.geteuid() == 0
        self.port_file = os.path.join(self.dir, "port")
        self.log_name = os.path.join(self.dir, "log")
        self.state = os.path.join(self.dir, "state")
        prefix = []
        if uid is not None:
            os.chown(self.dir, uid, uid)
            prefix = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
        # A sanitizer that does not bear the sandbox's start: the agent of another build.
        if "RSB_TEST_ENVD" in os.environ:
            options = ["--envd", os.environ["RSB_TEST_ENVD"], *options]
        self.options = options
        self.log = open(self.log_name, "wb")
        self.child = subprocess.Popen(
            # A relative directory: whoever works elsewhere for this server must find it all the same.
            prefix + [os.path.abspath(program), "--state", "state", "--port-file", self.port_file, "-v", *options],
            cwd=self.dir, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.sanitized = sanitizer.is_in(program)
        self.said = ""
        self.port = self.wait_port()

    def wait_port(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if os.path.exists(self.port_file):
                with open(self.port_file, encoding="utf-8") as f:
                    return json.load(f)["port"]
            if self.child.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError("rsb-local did not start: " + self.text())

    def text(self):
        with open(self.log_name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def connection(self, timeout=DEADLINE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, headers=KEY):
        """Status, headers and the decoded body of one call to the control plane."""
        c = self.connection()
        data = json.dumps(body).encode() if body is not None else None
        head = dict(headers)
        if data is not None:
            head["Content-Type"] = "application/json"
        c.request(method, path, data, head)
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, r.headers, json.loads(text) if text else None

    def create(self, **members):
        body = {"templateID": "base", "secure": True, "timeout": 120}
        body.update(members)
        status, _, answer = self.call("POST", "/sandboxes", body)
        assert status == 201, (status, answer, self.text())
        return Sandbox(self, answer)

    def stop(self, sig=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(sig)
        try:
            status = self.child.wait(DEADLINE)
        finally:
            self.log.close()
        crashes = sanitizer.in_log(self.text())
        assert not crashes and not self.said, (crashes, self.said)
        return status

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.remove()


def envelope(message, flag=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flag, len(data)) + data


def envelopes(data):
    """The messages of a stream's body, with their flags."""
    at = 0
    while at < len(data):
        flag, size = struct.unpack(">BI", data[at:at + 5])
        yield flag, json.loads(data[at + 5:at + 5 + size])
        at += 5 + size


class Result:
    """What a process left behind."""

    def __init__(self, messages):
        self.out = bytearray()
        self.err = bytearray()
        self.pid = 0
        self.end = None
        self.error = None
        self.finished = False
        for flag, m in messages:
            if flag == 2:
                self.finished = True
                self.error = m.get("error")
                continue
            event = m["event"]
            if "start" in event:
                self.pid = event["start"]["pid"]
            elif "data" in event:
                self.out += base64.b64decode(event["data"].get("stdout", ""))
                self.err += base64.b64decode(event["data"].get("stderr", ""))
            elif "end" in event:
                self.end = event["end"]

    @property
    def code(self):
        return self.end.get("exitCode", 0)


class Sandbox:
    def __init__(self, server, answer):
        self.server = server
        self.id = answer["sandboxID"]
        self.token = answer.get("envdAccessToken")

    def headers(self, port=ENVD_PORT, user=None, **more):
        h = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port)}
        if port == ENVD_PORT and self.token:
            h["X-Access-Token"] = self.token
        if user:
            h["Authorization"] = "Basic " + base64.b64encode((user + ":").encode()).decode()
        h.update({k.replace("_", "-"): v for k, v in more.items()})
        return h

    def request(self, method, path, body=None, headers=None, port=ENVD_PORT, chunked=False):
        c = self.server.connection()
        c.request(method, path, body, headers or self.headers(port), encode_chunked=chunked)
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, r.headers, text

    def is_paused(self):
        return self.server.call("GET", "/sandboxes/" + self.id)[2].get("state") == "paused"

    def health(self):
        return self.request("GET", "/health")[0]

    def start(self, cmd, *args, user=None, stdin=False, headers=None, **process):
        """A running Start: its response, to be read on."""
        c = self.server.connection()
        head = self.headers(user=user, Content_Type="application/connect+json",
                            Connect_Protocol_Version="1")
        head.update(headers or {})
        message = {"process": {"cmd": cmd, "args": list(args), **process}, "stdin": stdin}
        c.request("POST", "/process.Process/Start", envelope(message), head)
        r = c.getresponse()
        assert r.status == 200, (r.status, r.read())
        return c, r

    def run(self, cmd, *args, **how):
        c, r = self.start(cmd, *args, **how)
        data = r.read()
        c.close()
        return Result(envelopes(data))

    def sh(self, script, **how):
        return self.run("/bin/sh", "-c", script, **how)

    def text(self, script, **how):
        r = self.sh(script, **how)
        assert r.code == 0, (script, r.end, r.err)
        return r.out.decode()

    def rpc(self, method, message):
        status, _, text = self.request("POST", "/process.Process/" + method,
                                       json.dumps(message),
                                       self.headers(Content_Type="application/json"))
        return status, json.loads(text) if text else None

    def put(self, path, data, user="root"):
        status, _, text = self.request(
            "POST", f"/files?path={path}&username={user}", data,
            self.headers(Content_Type="application/octet-stream"))
        return status, json.loads(text)

    def kill(self):
        if self.server.sanitized and not self.is_paused():
            self.server.said += self.sh(sanitizer.IN_SANDBOX, user="root").out.decode(errors="replace")
        return self.server.call("DELETE", "/sandboxes/" + self.id)[0]


def read_message(response):
    """The next message of a stream."""
    head = response.read(5)
    assert len(head) == 5, head
    flag, size = struct.unpack(">BI", head)
    return flag, json.loads(response.read(size))


def wait_for(what, deadline=DEADLINE):
    """Polls a condition that no event tells of."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def raw(server, data, timeout=DEADLINE):
    """Everything that the server answers to these bytes."""
    s = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
    s.sendall(data)
    answer = b""
    try:
        while True:
            part = s.recv(65536)
            if not part:
                break
            answer += part
    except (ConnectionError, TimeoutError):
        pass
    s.close()
    return answer
