# SPDX-License-Identifier: MIT
"""A sidecar that was taken over (tests/tools/hostile-sidecar.c): the host stays whole and goes on."""

import contextlib
import os
import subprocess
import time

import harness
from harness import check, equal

HANG = 20  # seconds after which something hangs; a broken connection takes some to come back


def program(world, mode="none"):
    """The hostile sidecar, told how to take archives."""
    path = f"{world.dir('hostile')}/{mode}"
    if not os.path.exists(path):
        with open(f"{os.environ['RSB_TEST_BUILD']}/tests/tools/hostile-sidecar", "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(data + f"mode={mode}".encode())
        os.chmod(path, 0o755)
    return path


@contextlib.contextmanager
def hostile(world):
    name = f"h{world.n}"
    world.n += 1
    mount = f"{world.tmp}/mnt-{name}"
    env = {"RSB_SIDECAR": program(world)}
    world.rsb("up", "--name", name, "-m", mount, world.fresh("src"), env=env)
    box = harness.Sandbox(world, name, mount, None)
    try:
        yield box
    finally:
        box.down()


def there(box, argv, seconds=HANG):
    """Runs a local program on the mount, which may fail but must end."""
    try:
        return subprocess.run(argv, cwd=box.mount, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as e:
        raise harness.Failed(f"{argv} hangs") from e


def goes_on(box, pid):
    """The same daemon lives and serves."""
    def serves():
        return there(box, ["ls", "d-plain"]).stdout.split() != []

    harness.wait_until(serves, HANG, "the mount serves again")
    equal(box.status()["pid"], pid, "the daemon")


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) << 10


def test_listings(world):
    with hostile(world) as box:
        pid = box.status()["pid"]
        for name, words in (("d-empty", "Input/output error"), ("d-single", "Input/output error"),
                            ("d-count", ""), ("d-dots", ""), ("d-slash", ""), ("d-same", None)):
            r = there(box, ["ls", "-U", name])
            check(words is None or r.returncode != 0, f"{name} is listed")
            check(not words or words in r.stderr.decode(), f"{name}: {r.stderr!r:.300}")
            goes_on(box, pid)


def test_a_listing_without_end(world):
    if os.environ.get("RSB_TEST_QUICK"):
        return
    with hostile(world) as box:
        pid = box.status()["pid"]
        there(box, ["ls", "d-plain"])
        before = memory(pid)
        with contextlib.suppress(OSError):
            os.listdir(box.path("d-endless"))
            check(False, "it ends")
        check(memory(pid) - before < 600 << 20, f"{memory(pid) - before >> 20} MiB more")
        goes_on(box, pid)


LOOKUPS = ("f-credit", "f-reset", "f-stream", "f-ping", "f-unknown", "f-ack", "f-message", "f-nobody", "f-huge",
           "f-count", "f-deep", "f-attr", "f-type", "f-root", "f-errno")


def test_lookups(world):
    with hostile(world) as box:
        pid = box.status()["pid"]
        before = memory(pid)
        for name in LOOKUPS:
            there(box, ["stat", name])
            goes_on(box, pid)
        check(memory(pid) - before < 200 << 20, f"{memory(pid) - before >> 20} MiB more")


INSIDE = """
import contextlib, os, sys
root = os.getcwd()
os.chdir("d-deep/d-inside")
where = os.getcwd()
makes = {"mkdir": lambda: os.mkdir(root + "/d-made"), "mknod": lambda: os.mkfifo(root + "/f-made"),
         "create": lambda: os.open(root + "/f-made", os.O_CREAT | os.O_WRONLY),
         "symlink": lambda: os.symlink("x", root + "/f-made")}
with contextlib.suppress(OSError):
    makes[sys.argv[1]]()
with contextlib.suppress(OSError):
    os.stat(root + ("/d-made" if sys.argv[1] == "mkdir" else "/f-made"))
sys.exit(where != os.getcwd())
"""


def test_what_is_made_is_a_directory_that_somebody_is_in(world):
    with hostile(world) as box:
        pid = box.status()["pid"]
        for way in ("mkdir", "mknod", "create", "symlink"):
            r = there(box, ["python3", "-c", INSIDE, way])
            check(r.returncode == 0, f"{way}: it was moved, {r.stderr!r:.300}")
            goes_on(box, pid)


def test_commands(world):
    with hostile(world) as box:
        pid = box.status()["pid"]
        for name, want in (("plain", 0), ("stage", None), ("code", None), ("signal", None), ("less", None),
                           ("beyond", None)):
            r = there(box, ["timeout", str(HANG - 2), *env_of(world), "rsb-exec", name])
            check(r.returncode not in (124, 134, 139), f"{name}: {r.returncode}, {r.stderr!r:.300}")
            check(want is None or r.returncode == want, f"{name}: {r.returncode}, {r.stderr!r:.300}")
            goes_on(box, pid)


def env_of(world):
    return ["env", "-i", *(f"{k}={v}" for k, v in world.env.items())]


def test_archives(world):
    source = world.fresh("src")
    for i in range(3):
        with open(f"{source}/f{i}", "wb") as f:
            f.write(os.urandom(3 << 20))
    for mode, status in (("tar-error", 125), ("tar-problem", None), ("tar-long", 125), ("tar-credit", None),
                         ("tar-reset", None), ("tar-early", None)):
        name = f"a{mode}"
        mount = f"{world.tmp}/mnt-{name}"
        start = time.monotonic()
        r = world.rsb("up", "--name", name, "-m", mount, source, env={"RSB_SIDECAR": program(world, mode)},
                      check_status=None, timeout=90)
        text = r.stderr + r.stdout
        check(time.monotonic() - start < 60, f"{mode} took {time.monotonic() - start:.0f} s")
        check(status in (None, r.returncode), f"{mode}: {r.returncode}, {text!r:.500}")
        check(r.returncode == 0 or r.stderr.count(b"\n") == 1, f"{mode}: {text!r:.500}")
        check(not any(c < 32 and c != 10 for c in text), f"{mode}: {text!r:.500}")
        harness.Sandbox(world, name, mount, source).down()


harness.main(globals())
