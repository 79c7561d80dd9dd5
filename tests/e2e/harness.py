# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: programs, a private state, sandboxes, and a check that nothing is left.

A test file has functions test_*(world) and ends with harness.main(globals()). One world (state directory,
rsb-local) serves all of a file; each function makes the sandboxes that it needs. A function that leaves a mount,
a process or a state directory behind fails, whatever it found; nothing is left when the tests are stopped (guard.py).
RSB_TEST_BIN names the directory of installed programs; else RSB_TEST_BUILD is a build tree, and RSB_TEST_HOST another
one for rsb-local and rsb-envd (the thread sanitizer does not bear the start of a sandbox).
"""

import contextlib
import glob
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

import guard
import sanitizer
from guard import mounts_below, processes_of

SKIP = 77
PROGRAMS = {
    "rsb": "exec", "rsb-exec": "exec", "rsb-mount": "fuse", "rsb-sidecar": "sidecar",
    "rsb-local": "sidecar/local", "rsb-envd": "sidecar/envd",
}
OF_HOST = ("rsb-local", "rsb-envd")


class Failed(Exception):
    pass


def check(condition, message="check failed"):
    if not condition:
        raise Failed(message)


def equal(got, want, what=""):
    if got != want:
        raise Failed(f"{what}: got {got!r:.2000}, want {want!r:.2000}")


def sentence(r, *words):
    """stderr is one line and holds the words."""
    text = r.stderr.decode()
    equal(len(text.strip().split("\n")), 1, f"lines of {text!r}")
    for w in words:
        check(w in text, f"{w!r} is not in {text!r}")


def answer(r):
    """--json is one object on one line."""
    equal(r.stdout.count(b"\n"), 1, f"lines of {r.stdout!r}")
    return json.loads(r.stdout)


@contextlib.contextmanager
def named(world, name):
    """Ends the sandbox if the test does not."""
    try:
        yield name
    finally:
        if os.path.isdir(os.path.join(world.env["XDG_STATE_HOME"], "rsb", name)):
            world.rsb("down", "--kill", "--force", "--no-sync", name)


def how_many(quick, usual, full):
    """Rounds of a test: few of them where each is dear, all before a release (packaging/test --full)."""
    if os.environ.get("RSB_TEST_QUICK"):
        return quick
    return full if os.environ.get("RSB_TEST_FULL") else usual


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"timed out after {seconds} s: {what}")
        time.sleep(0.01)


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
        return f.read().strip()


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def ancestors(pid):
    while pid > 1:
        yield pid
        pid = parent(pid)


def below(pid):
    """Processes that have pid above them, whatever their namespaces."""
    found = []
    for other in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):
            if other != pid and pid in ancestors(other):
                found.append(other)
    return found


def is_sidecar(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        argv = f.read().split(b"\0")
    return b"--workspace" in argv and b"rsb-sidecar" in argv[0]


def sidecars_of(pid):
    """Below process pid; one for each sandbox, without its children that are about to be commands."""
    found = []
    for other in below(pid):
        with contextlib.suppress(OSError):
            if is_sidecar(other) and not is_sidecar(parent(other)):
                found.append(other)
    return found


class World:
    def __init__(self):
        self.tmp = os.path.realpath(tempfile.mkdtemp(prefix="rsb-e2e."))
        os.chmod(self.tmp, 0o711)
        self.bin = self._programs()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("E2B_", "RSB_"))}
        self.env.update({
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": self.dir("home"),
            "XDG_STATE_HOME": self.dir("state"),
            "XDG_RUNTIME_DIR": self.dir("run", 0o700),
            "XDG_CONFIG_HOME": self.dir("config"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org",
            "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org",
            "LC_ALL": "C.UTF-8",
        })
        if os.path.exists(f"{self.bin}/rsb-sidecar"):
            self.env["RSB_SIDECAR"] = os.path.realpath(f"{self.bin}/rsb-sidecar")
        self.sanitized = sanitizer.is_in(f"{self.bin}/rsb")
        self.said = []
        self.log_seen = 0
        self.n = 0

    def _programs(self):
        installed = os.environ.get("RSB_TEST_BIN")
        if installed:
            return installed
        farm = self.dir("bin")
        build = os.environ["RSB_TEST_BUILD"]
        host = os.environ.get("RSB_TEST_HOST") or build
        for name, folder in PROGRAMS.items():
            path = os.path.realpath(f"{host if name in OF_HOST else build}/{folder}/{name}")
            if os.path.exists(path):
                os.symlink(path, f"{farm}/{name}")
        return farm

    def sidecar_program(self):
        """It is beside the others in a build only: nobody starts it by its name."""
        installed = glob.glob(f"{os.path.dirname(self.bin)}/libexec/*/rsb-sidecar")
        return installed[0] if installed else f"{self.bin}/rsb-sidecar"

    def dir(self, name, mode=0o755):
        path = os.path.join(self.tmp, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return path

    def fresh(self, what="dir"):
        self.n += 1
        return self.dir(f"{what}{self.n}")

    def run(self, *argv, check_status=0, timeout=120, **kw):
        """Runs a program; check_status None takes any. stdout and stderr are bytes."""
        kw.setdefault("stdin", subprocess.DEVNULL if "input" not in kw else None)
        if kw["stdin"] is None:
            del kw["stdin"]
        kw["env"] = {**self.env, **kw.get("env", {})}
        r = subprocess.run(argv, capture_output=True, timeout=timeout, check=False, **kw)
        if check_status is not None and r.returncode != check_status:
            raise Failed(f"{argv!r:.500} ended with {r.returncode}, want {check_status}\n"
                         f"stdout: {r.stdout.decode(errors='replace')[-2000:]}\n"
                         f"stderr: {r.stderr.decode(errors='replace')[-2000:]}")
        return r

    def rsb(self, *args, **kw):
        return self.run("rsb", *args, **kw)

    def run_with_mounts(self, script, *args, **kw):
        """A script of sh that mounts for itself alone, as who we are; an ordinary user may do so in a namespace of users."""
        how = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-current-user", "--keep-caps"]
        return self.run("unshare", *how, "sh", "-ec", script, "sh", *args, **kw)

    @contextlib.contextmanager
    def sandbox(self, source=None, up=()):
        """A sandbox of a directory (a fresh one unless given), mounted; ended afterwards. In up, MOUNT is where."""
        source = source or self.fresh("src")
        self.n += 1
        name = f"t{self.n}"
        mount = os.path.join(self.tmp, f"mnt{self.n}")
        box = Sandbox(self, name, mount, source)
        try:
            self.rsb("up", "--name", name, "-m", mount, *(u.replace("MOUNT", mount) for u in up), source)
        except BaseException:
            with contextlib.suppress(Failed):  # what went wrong first is what counts
                box.down()
            raise
        try:
            yield box
        finally:
            box.down()

    def local(self, name):
        """Of what rsb keeps about its rsb-local."""
        return os.path.join(self.env["XDG_STATE_HOME"], "rsb/.local", name)

    def local_server(self):
        try:
            with open(self.local("server/port.json"), encoding="ascii") as port_file:
                return json.load(port_file)
        except FileNotFoundError:
            return None

    def api(self, method, path):
        """What the control plane of the rsb-local that runs answers. In this process: a new one would flush open files."""
        with open(self.local("key"), encoding="ascii") as f:
            key = f.read().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.local_server()['port']}{path}", method=method,
                                         headers={"X-API-Key": key})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    @contextlib.contextmanager
    def own_server(self, *options, env=None):
        """An rsb-local with options of its own, where rsb looks for one; no sandbox may be there."""
        self.stop_server()
        os.makedirs(self.local(""), mode=0o700, exist_ok=True)
        key = self.local("key")
        if not os.path.exists(key):
            with open(key, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
                f.write(secrets.token_hex(32))
        with open(self.local("log"), "wb") as log:
            server = subprocess.Popen(
                ["rsb-local", "--listen", "127.0.0.1:0", "--state", self.local("server"), "--api-key-file", key,
                 "--port-file", self.local("server/port.json"), *options],
                env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: self.local_server() or server.poll() is not None, 15, "rsb-local starts")
        try:
            yield
        finally:
            server.terminate()
            server.wait(timeout=20)

    def stop_server(self):
        server = self.local_server()
        if server:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server["pid"], signal.SIGTERM)
            wait_until(lambda: not processes_of(self.env["XDG_STATE_HOME"]), 20, "rsb-local ends")

    def leftovers(self):
        left = [f"mount {m}" for m in mounts_below(self.tmp) if "/mnt" in m]
        state = os.path.join(self.env["XDG_STATE_HOME"], "rsb")
        if os.path.isdir(state):
            left += [f"state {n}" for n in os.listdir(state) if n != ".local"]
        left += [f"process {p} {c}" for p, c in processes_of(self.env["XDG_STATE_HOME"])
                 if "rsb-local" not in c and "rsb-envd" not in c]
        return left

    def reports(self):
        """What sanitizers said, and of a sandbox that crashed; once."""
        with contextlib.suppress(FileNotFoundError):
            with open(self.local("log"), encoding="utf-8", errors="replace") as f:
                log = f.read()
            self.said += sanitizer.in_log(log[self.log_seen:] if len(log) >= self.log_seen else log)
            self.log_seen = len(log)
        said, self.said = self.said + sanitizer.reports(), []
        return said

    def close(self, patience=20):
        server = self.local_server()
        if server:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server["pid"], signal.SIGTERM)
        deadline = time.monotonic() + patience
        while processes_of(self.env["XDG_STATE_HOME"]) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [f"process {p} {c}" for p, c in processes_of(self.env["XDG_STATE_HOME"])]
        left += [f"mount {m}" for m in mounts_below(self.tmp)]
        for pid, _ in processes_of(self.env["XDG_STATE_HOME"]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for m in sorted(mounts_below(self.tmp), reverse=True):
            subprocess.run(["umount", "-l", m], check=False)
        shutil.rmtree(self.tmp, ignore_errors=True)
        if left:
            raise Failed("left behind: " + "; ".join(left))


class Sandbox:
    def __init__(self, world, name, mount, source):
        self.world, self.name, self.mount, self.source = world, name, mount, source

    def path(self, *parts):
        return os.path.join(self.mount, *parts)

    def exec(self, *argv, **kw):
        kw.setdefault("cwd", self.mount)
        return self.world.run("rsb-exec", *argv, **kw)

    def sh(self, script, **kw):
        return self.exec("sh", "-c", script, **kw).stdout.decode()

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def events(self):
        with open(self.state("events"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def state(self, name):
        return os.path.join(self.world.env["XDG_STATE_HOME"], "rsb", self.name, name)

    def status(self):
        return json.loads(self.world.rsb("status", "--json", self.name).stdout)

    def ask_sanitizers(self):
        """A sidecar that is gone cannot answer, which the test has seen then; a hostile one says anything."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            r = self.world.run("rsb-exec", "-s", self.name, "sh", "-c", sanitizer.IN_SANDBOX, cwd="/",
                               check_status=None, timeout=30)
            if sanitizer.ELSEWHERE.encode() in r.stdout:
                self.world.said.append(r.stdout.decode(errors="replace"))

    def end(self):
        """A daemon that fails at its end is not missed by anybody: its log tells."""
        log = io.BytesIO()
        with contextlib.suppress(FileNotFoundError):
            log = open(self.state("log"), "rb")
        with log:
            self.world.rsb("down", "--kill", "--force", "--no-sync", self.name)
            check(b"was ended by signal 6" not in log.read(), "the daemon has aborted")

    def down(self):
        if self.world.sanitized:
            self.ask_sanitizers()
        if os.path.isdir(os.path.join(self.world.env["XDG_STATE_HOME"], "rsb", self.name)):
            self.end()
        with contextlib.suppress(OSError):
            os.rmdir(self.mount)


class DelayProxy:
    """A long path to a port of this machine that records what goes over our links."""

    def __init__(self, target_port, rtt_ms=0):
        build = os.environ["RSB_TEST_BUILD"]
        self.process = subprocess.Popen(
            [f"{build}/tests/tools/delay-proxy", "0", str(target_port), "--rtt-ms", str(rtt_ms)],
            stdout=subprocess.PIPE)
        words = self.process.stdout.readline().split()
        self.port = int(words[1])
        self.control = socket.create_connection(("127.0.0.1", int(words[3])))
        self.lines = self.control.makefile("rw")

    def command(self, text):
        self.lines.write(text + "\n")
        self.lines.flush()
        said = self.lines.readline().strip()
        check(said and not said.startswith("error"), f"{text}: {said}")
        return said

    def record(self):
        return {k: int(v) for k, v in (w.split("=") for w in self.command("record").split())}

    def close(self):
        self.control.close()
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def far_mount(world, *options, mount=(), rtt_ms=0, env=None):
    """A sandbox whose mount reaches it through a proxy; mount: options that only rsb-mount has."""
    with world.sandbox(up=options) as box:
        world.rsb("umount", box.name)
        proxy = DelayProxy(world.local_server()["port"], rtt_ms)
        os.makedirs(box.mount, exist_ok=True)
        try:
            world.run("rsb-mount", *options, *mount, box.name, box.mount,
                      env={"RSB_LOCAL_URL": f"http://127.0.0.1:{proxy.port}", **(env or {})})
            yield box, proxy
        finally:
            with contextlib.suppress(OSError, ValueError):
                proxy.command("stall off")
                proxy.command("refuse off")
            world.rsb("umount", "-f", box.name, check_status=None)
            proxy.close()


def skip_unless_usable():
    if not os.path.exists("/dev/fuse"):
        print("skipped: no /dev/fuse")
        sys.exit(SKIP)


def run_all(world, tests):
    failed = 0
    for name, test in tests:
        start = time.monotonic()
        try:
            test(world)
            left = world.leftovers()
            check(not left, "left behind: " + "; ".join(left))
            check(not (said := world.reports()), "\n".join(said))
            print(f"ok   {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception as e:  # every kind of failure is told and the next test has its turn
            failed += 1
            print(f"FAIL {name}: {e}", flush=True)
            if not isinstance(e, Failed):
                traceback.print_exc()
    return failed


def run_world(tests):
    world = World()
    failed = 0
    patience = 20
    # Started by a program with the thread sanitizer, it could not start sandboxes.
    host = world.own_server() if os.environ.get("RSB_TEST_HOST") else contextlib.nullcontext()
    try:
        with host:
            failed = run_all(world, tests)
    except guard.Stopped:
        patience = 2  # what tests had going may go on
        raise
    finally:
        try:
            world.close(patience)
        except Failed as e:
            failed += 1
            print(f"FAIL end: {e}", flush=True)
    print(f"{len(tests) - min(failed, len(tests))} passed, {failed} failed")
    return 1 if failed else 0


def main(names):
    skip_unless_usable()
    wanted = sys.argv[1:]
    tests = [(n, f) for n, f in names.items() if n.startswith("test_") and (not wanted or n in wanted)]
    guard.run(lambda: run_world(tests))
