# SPDX-License-Identifier: MIT
"""What both sides do to one workspace: git, locks, a disk that is full."""

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import harness  # noqa: E402  (found by the line above)
import mountbox  # noqa: E402
from mount_ops import expect_errno, get, put  # noqa: E402
from mountbox import box, wait_until  # noqa: E402


def git(b, *argv):
    env = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", HOME=b.dir, GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@example.org",
               GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@example.org")
    return subprocess.run(["git", *argv], cwd=b.mount, env=env, check=True, capture_output=True, timeout=60).stdout


def test_git_reads_nothing_again(tmp):
    """Neither side's git takes the other's index for stale: the tree's files are not read anew."""
    n_file = 60
    with box(tmp) as b:
        proxy = harness.DelayProxy(b.port)
        try:
            b.options = b.options.replace(f":{b.port}/", f":{proxy.port}/")
            b.remount()
            git(b, "init", "-q")
            for i in range(n_file):
                put(f"{b.mount}/f{i}", b"%d" % i * 100)
                os.utime(f"{b.mount}/f{i}", (1e9, 1e9))
            git(b, "add", ".")
            git(b, "commit", "-qm", "all")
            assert git(b, "status", "--porcelain") == b""
            there = ("git", "-c", f"safe.directory={b.workspace}", "status", "--porcelain")
            assert b.command(*there) == b""
            index = os.stat(f"{b.mount}/.git/index")
            proxy.record()
            assert git(b, "status", "--porcelain") == b""
            seen = proxy.record()
            print(f"     {seen}")
            assert seen.get("read", 0) < n_file // 3, seen
            after = os.stat(f"{b.mount}/.git/index")
            assert (after.st_ino, after.st_mtime_ns) == (index.st_ino, index.st_mtime_ns)
            # And the second one asks for nothing at all.
            proxy.record()
            assert git(b, "status", "--porcelain") == b""
            again = proxy.record()
            print(f"     {again}")
            assert again.get("read", 0) == 0 and again.get("lookup", 0) == 0, again
            assert b.command(*there) == b""
        finally:
            b.unmount()
            proxy.close()


def test_a_lock_holds_on_both_sides(tmp):
    script = ("import fcntl, os, struct, time\n"
              "f = open('l', 'r+b')\n"
              "{}\n"
              "print('held', flush=True)\n"
              "while not os.path.exists('let-go.{}'): time.sleep(0.01)\n")
    takes = {
        "flock": "fcntl.flock(f, fcntl.LOCK_EX)",
        "posix": "fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)",
        "ofd": "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 10, 0))",
    }
    with box(tmp) as b:
        put(f"{b.mount}/l", b"x" * 20)
        for kind, take in takes.items():
            for here in True, False:
                top, other = (b.mount, b.workspace) if here else (b.workspace, b.mount)
                # A name of its own: the mount may know of the last one that it is absent.
                argv = [sys.executable, "-c", script.format(take, f"{kind}.{here}")]
                holder = subprocess.Popen(argv, cwd=top, stdout=subprocess.PIPE)
                assert holder.stdout.readline() == b"held\n"
                with open(f"{other}/l", "r+b") as f:
                    if kind == "flock":
                        expect_errno(errno.EAGAIN, fcntl.flock, f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    else:
                        expect_errno(errno.EAGAIN, fcntl.lockf, f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
                        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 10)
                    put(f"{top}/let-go.{kind}.{here}", b"")
                    assert holder.wait(20) == 0

                    def free(f=f):
                        with contextlib.suppress(OSError):
                            if kind == "flock":
                                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                            else:
                                fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
                            return True
                        return False
                    wait_until(free, f"{kind} is free")


class SmallBox(mountbox.Box):
    """Its workspace has 16 MiB."""

    def start_sidecar(self):
        image = f"{self.dir}/image"
        subprocess.run(["truncate", "-s", "16M", image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-N", "256", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.workspace], check=True)
        super().start_sidecar()

    def close(self):
        super().close()
        subprocess.run(["umount", self.workspace], check=True)


def succeeds(call, *args):
    try:
        call(*args)
    except OSError:
        return False
    return True


def test_a_full_disk_is_told(tmp):
    """By the call itself, or for data by the next write, fsync or close: once, and nothing is lost in silence."""
    if os.getuid() != 0:
        print("     needs root, for a small disk")
        return
    b = SmallBox(tmp)
    try:
        m, w = b.mount, b.workspace
        chunk = os.urandom(1 << 20)
        for sync in False, True:
            fd = os.open(f"{m}/big", os.O_CREAT | os.O_WRONLY | (os.O_SYNC if sync else 0))
            said = []
            for _ in range(20):
                try:
                    os.write(fd, chunk)
                except OSError as e:
                    said.append(e.errno)
                    break
            for last in lambda: os.fsync(fd), lambda: os.close(fd):
                try:
                    last()
                except OSError as e:
                    said.append(e.errno)
            assert said and set(said) == {errno.ENOSPC}, said
            assert os.stat(f"{m}/big").st_size == os.stat(f"{w}/big").st_size < 16 << 20
            os.unlink(f"{m}/big")
        fd = os.open(f"{m}/alloc", os.O_CREAT | os.O_WRONLY)
        expect_errno(errno.ENOSPC, os.posix_fallocate, fd, 0, 32 << 20)
        os.close(fd)
        os.unlink(f"{m}/alloc")
        for call in (lambda n: os.mkdir(n), lambda n: os.close(os.open(n, os.O_CREAT | os.O_WRONLY)),
                     lambda n: os.mkfifo(n)):
            # ext4 gives back what was removed with its next commit.
            mountbox.wait_until(lambda: succeeds(call, f"{m}/0"), "room")
            made = [f"{m}/0"]
            for i in range(1, 3000):
                try:
                    call(f"{m}/{i}")
                    made.append(f"{m}/{i}")
                except OSError as e:
                    assert e.errno == errno.ENOSPC, e
                    break
            assert 0 < len(made) < 3000, len(made)
            assert sorted(os.listdir(m)) == sorted(os.listdir(w))
            for n in made:
                (os.rmdir if os.path.isdir(n) else os.unlink)(n)
        put(f"{m}/after", b"fits")
        assert get(f"{w}/after") == b"fits"
    finally:
        b.close()


mountbox.main(globals())
