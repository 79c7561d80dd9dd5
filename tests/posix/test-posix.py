# SPDX-License-Identifier: MIT
"""The cases of posix-cases on a local file system and on the mount: both say the same, but for exceptions.txt.

As root the mount forwards ids (idmap=none) and the cases become other users; the same again as an ordinary user whose
sidecar is root, by programs that are copied where one may read them. RSB_TEST_FULL: all cases, and once more with
-o sync and with a sidecar that is no root.
"""

import contextlib
import fnmatch
import glob
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("RSB_TEST_E2E", os.path.join(HERE, "..", "e2e")))

import harness  # noqa: E402  (found by the line above)
import mountbox  # noqa: E402

USER = "nobody"
CASES = f"{mountbox.BUILD}/tests/posix/posix-cases"
FULL = harness.how_many(False, False, True)


class Exceptions:
    """Lines "who name-pattern: what the mount says # why"; who is root, user, mapped (the sidecar is root) or any."""

    def __init__(self, who):
        self.rules = []
        with open(f"{HERE}/exceptions.txt", encoding="utf-8") as f:
            for line in filter(None, (text.split("#")[0].strip() for text in f)):
                rule_who, rest = line.split(None, 1)
                name, text = rest.split(": ", 1)
                if rule_who in (who, "any"):
                    self.rules.append([name, text.strip(), 0])

    def allow(self, name, text):
        for rule in self.rules:
            if fnmatch.fnmatchcase(name, rule[0]) and fnmatch.fnmatchcase(text.strip(), rule[1]):
                rule[2] += 1
                return True
        return False

    def unused(self):
        return [name for name, _, n in self.rules if not n]


def run_cases(directory, log):
    """name -> what came of it."""
    env = dict(os.environ)
    if FULL:
        env["RSB_POSIX_BIG"] = "1"
    start = time.monotonic()
    with open(log, "wb") as out:
        status = subprocess.run([CASES, directory, *sys.argv[1:2]], stdout=out, env=env, timeout=3000,
                                check=False).returncode
    found = {}
    with open(log, encoding="latin-1") as f:
        for line in f:
            name, _, text = line.rstrip("\n").partition(":")
            assert name not in found, f"two cases have the name {name}"
            found[name] = text
    assert status == 0, f"{status}: {[n for n, t in found.items() if 'UNFIT' in t]}"
    print(f"     {len(found)} cases in {directory} ({time.monotonic() - start:.0f} s)", flush=True)
    return found


def file_system(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, check=True,
                          text=True).stdout.strip()


class FarBox(mountbox.Box):
    """A mount of a sidecar that root has started: SIDECAR is its port and the file of its key."""

    def start_sidecar(self):
        port, key = os.environ["SIDECAR"].split()
        self.port = int(port)
        shutil.copy(key, self.key)
        self.sidecar = subprocess.Popen(["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"])


class Local:
    """A directory of ext4: of the temporary directory's own, or as root of an image on a loop device."""

    def __init__(self, tmp):
        self.dir = tempfile.mkdtemp(dir=tmp)
        self.is_image = False
        self.kind = file_system(self.dir)
        if self.kind != "ext2/ext3" and os.getuid() == 0 and shutil.which("mkfs.ext4"):
            image = self.dir + ".image"
            subprocess.run(["truncate", "-s", "2G", image], check=True)
            subprocess.run(["mkfs.ext4", "-q", image], check=True)
            self.is_image = subprocess.run(["mount", "-o", "loop", image, self.dir], check=False).returncode == 0
            self.kind = file_system(self.dir)
        self.top = f"{self.dir}/top"
        os.mkdir(self.top)

    def close(self):
        if self.is_image:
            subprocess.run(["umount", self.dir], check=True)


def compare(local, mounted, exceptions):
    bad = []
    for name in sorted(set(local) | set(mounted)):
        here, there = local.get(name, "not run"), mounted.get(name, "not run")
        if here != there and not exceptions.allow(name, there):
            bad.append((name, here, there))
    for name, here, there in bad:
        print(f"FAIL {name}\n  local:{here}\n  mount:{there}")
    stale = exceptions.unused() if FULL and not sys.argv[1:] else []
    for name in stale:
        print(f"FAIL the exception {name} is none")
    return len(bad) + len(stale)


def run(tmp, who, *options):
    local = Local(tmp)
    os.chmod(local.dir, 0o755)
    try:
        b = (FarBox if "SIDECAR" in os.environ else mountbox.Box)(tmp, *options)
        try:
            os.chmod(b.dir, 0o755)
            print(f"-- as {who} on {local.kind} and the mount {options}", flush=True)
            there = run_cases(b.mount, f"{tmp}/mount.{who}")
        finally:
            b.close()
        return compare(run_cases(local.top, f"{tmp}/local.{who}"), there, Exceptions(who))
    finally:
        local.close()


@contextlib.contextmanager
def sidecar_of_root(copy):
    key = secrets.token_bytes(32)
    workspace = tempfile.mkdtemp(dir=copy)
    shutil.chown(workspace, USER)
    with open(f"{copy}/key", "w", encoding="ascii") as f:
        f.write(key.hex() + "\n")
    r, w = os.pipe()
    os.write(w, key)
    os.close(w)
    with subprocess.Popen([f"{mountbox.BUILD}/sidecar/rsb-sidecar", "--port", "0", "--listen", "127.0.0.1", "--no-cgroup",
                           "--workspace", workspace, "--user", USER, "--key-fd", str(r), "--journal", f"{copy}/journal"],
                          stdout=subprocess.PIPE, pass_fds=[r]) as sidecar:
        os.close(r)
        try:
            yield f"{sidecar.stdout.readline().split()[1].decode()} {copy}/key"
        finally:
            sidecar.terminate()


def run_as_user(tmp):
    """A copy of what it takes, and this file again as a user who mounts for himself."""
    copy = f"{tmp}/copy"
    for name, path in (("fuse", mountbox.MOUNT), ("sidecar", f"{mountbox.BUILD}/sidecar/rsb-sidecar"),
                       ("tests/e2e", f"{mountbox.BUILD}/tests/e2e/run-there"), ("tests/posix", CASES)):
        os.makedirs(f"{copy}/{name}")
        shutil.copy(path, f"{copy}/{name}/")
    for path in (__file__, f"{HERE}/exceptions.txt", *glob.glob(f"{os.path.dirname(harness.__file__)}/*.py")):
        shutil.copy(path, copy)
    os.mkdir(f"{copy}/tmp")
    shutil.chown(f"{copy}/tmp", USER)
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    env = {k: v for k, v in os.environ.items() if k != "RSB_TEST_BIN"}
    env.update(RSB_TEST_BUILD=copy, RSB_TEST_E2E=copy, TMPDIR=f"{copy}/tmp", HOME=f"{copy}/tmp")
    with sidecar_of_root(copy) as env["SIDECAR"]:
        failed = as_user(copy, env)
    del env["SIDECAR"]
    return failed + (as_user(copy, env) if FULL else 0)


def as_user(copy, env):
    """In a mount namespace where users may open /dev/fuse, as udev lets them."""
    os.makedirs(f"{copy}/dev", exist_ok=True)
    opened = ("mount -t tmpfs dev $1 && mknod -m 666 $1/fuse c 10 229 && mount --bind $1/fuse /dev/fuse && "
              "shift && exec \"$@\"")
    return subprocess.run(["unshare", "--mount", "sh", "-c", opened, "sh", f"{copy}/dev",
                           "setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups", "--inh-caps=-all",
                           os.path.realpath(sys.executable), f"{copy}/{os.path.basename(__file__)}",
                           *sys.argv[1:]], env=env, check=False).returncode


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="rsb-posix.") as tmp:
        tmp = os.path.realpath(tmp)
        for directory in os.path.dirname(tmp), tmp:
            if os.stat(directory).st_uid == os.getuid() and directory != "/tmp":
                os.chmod(directory, 0o755)
        if os.getuid() == 0:
            failed += run(tmp, "root", "idmap=none", "allow_other")
            failed += run_as_user(tmp)
            if FULL:
                failed += run(tmp, "root", "idmap=none", "allow_other", "sync")
        else:
            failed += run(tmp, "mapped" if "SIDECAR" in os.environ else "user")
    print(f"{failed} failed")
    return 1 if failed else 0


mountbox.run(main)
