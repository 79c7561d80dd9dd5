# SPDX-License-Identifier: MIT
"""The link is cut at every message of a script of calls: nobody notices.

Before the message, which is lost, and behind it, so that its answer is. The tree that the script leaves and what
each call returned are those of a run without a cut.
"""

import contextlib
import errno
import fcntl
import os
import random
import socket
import stat

import harness
from harness import check, equal

CALLS = 200


class Script:
    """The same calls each time, on what is in a directory: names and bytes come from the seed, nothing from the clock."""

    def __init__(self, box, directory, seed):
        self.box, self.directory = box, directory
        self.root = box.path(directory)
        self.random = random.Random(seed)
        self.dirs = [""]
        self.n = 0

    def path(self, name):
        return os.path.join(self.root, name)

    def name(self):
        """One of few names, so that calls meet what others made, or that there is nothing."""
        return os.path.join(self.random.choice(self.dirs), f"n{self.random.randrange(8)}")

    def data(self):
        return self.random.randbytes(self.random.choice((1, 100, 5000, 70000)))

    @contextlib.contextmanager
    def file(self, flags, mode=0o644):
        fd = os.open(self.path(self.name()), flags | os.O_CLOEXEC, mode)
        try:
            yield fd
        finally:
            os.close(fd)

    def do_mkdir(self):
        name = self.name()
        os.mkdir(self.path(name))
        if len(self.dirs) < 6:
            self.dirs.append(name)

    def do_create(self):
        with self.file(os.O_CREAT | os.O_EXCL | os.O_WRONLY) as fd:
            return os.write(fd, self.data())

    def do_replace(self):
        with self.file(os.O_CREAT | os.O_TRUNC | os.O_WRONLY) as fd:
            return [os.write(fd, self.data()) for _ in range(3)]

    def do_append(self):
        with self.file(os.O_CREAT | os.O_APPEND | os.O_WRONLY) as fd:
            return os.write(fd, b"line\n" * 7), os.fsync(fd)

    def do_patch(self):
        with self.file(os.O_RDWR) as fd:
            return os.pwrite(fd, b"patch", self.random.randrange(9000)), os.pread(fd, 9000, 0)

    def do_truncate(self):
        os.truncate(self.path(self.name()), self.random.randrange(9000))

    def do_allocate(self):
        with self.file(os.O_RDWR) as fd:
            return os.posix_fallocate(fd, 0, 12000), os.fstat(fd).st_size

    def do_copy(self):
        with self.file(os.O_RDONLY) as fd, self.file(os.O_WRONLY) as to:
            return os.copy_file_range(fd, to, 4000, 0, 0)

    def do_lock(self):
        with self.file(os.O_RDWR) as fd:
            return fcntl.flock(fd, fcntl.LOCK_EX), fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 5)

    def do_read(self):
        with self.file(os.O_RDONLY) as fd:
            return os.read(fd, 100000)

    def do_list(self):
        return sorted(os.listdir(self.path(self.random.choice(self.dirs))))

    def do_stat(self):
        st = os.lstat(self.path(self.name()))
        return st.st_mode, st.st_nlink, 0 if stat.S_ISDIR(st.st_mode) else st.st_size

    def do_unlink(self):
        os.unlink(self.path(self.name()))

    def do_rmdir(self):
        os.rmdir(self.path(self.name()))

    def do_rename(self):
        os.rename(self.path(self.name()), self.path(self.name()))

    def do_link(self):
        os.link(self.path(self.name()), self.path(self.name()), follow_symlinks=False)

    def do_symlink(self):
        os.symlink(f"n{self.random.randrange(8)}", self.path(self.name()))

    def do_readlink(self):
        return os.readlink(self.path(self.name()))

    def do_mkfifo(self):
        os.mkfifo(self.path(f"fifo{self.random.randrange(4)}"))

    def do_chmod(self):
        os.chmod(self.path(self.name()), self.random.choice((0o600, 0o644, 0o755)))

    def do_utime(self):
        ns = self.random.randrange(10**18)
        os.utime(self.path(self.name()), ns=(ns, ns))

    def do_setxattr(self):
        os.setxattr(self.path(self.name()), "user.a", self.data()[:100], self.random.choice((0, os.XATTR_CREATE)))

    def do_removexattr(self):
        os.removexattr(self.path(self.name()), "user.a")

    def do_command(self):
        """What it does is no part of a file system's promise to be done once; it is of ours."""
        name = f"n{self.random.randrange(8)}"
        r = self.box.exec("sh", "-c", f"echo {self.n} >> {name}; cat {name} | wc -c", cwd=self.root, check_status=None)
        return r.returncode, r.stdout

    def run(self):
        """What each call returned."""
        calls = sorted(n for n in dir(self) if n.startswith("do_") and n != "do_command")
        calls += ["do_create", "do_replace", "do_append"] * 3  # else there is little for the others
        results = []
        os.mkdir(self.root)
        for self.n in range(CALLS):
            what = "do_command" if self.n % 40 == 20 else self.random.choice(calls)
            try:
                result = getattr(self, what)()
            except OSError as e:
                result = errno.errorcode[e.errno]
            results.append((self.n, what, result))
        return results, self.tree()

    def tree(self):
        """As the sandbox has it, without what the clock decides."""
        return self.box.sh("find . -printf '%p %y %m %n %l ' -type f -exec sha256sum {} + -o -printf '\\n' | sort;"
                           "getfattr -dR . 2>/dev/null || true", cwd=self.root)


@contextlib.contextmanager
def behind_proxy(world):
    with world.sandbox() as box:
        world.rsb("umount", box.name)
        proxy = harness.DelayProxy(world.local_server()["port"])
        try:
            world.rsb("mount", box.name, box.mount, env={"RSB_LOCAL_URL": f"http://127.0.0.1:{proxy.port}"})
            yield box, proxy
        finally:
            world.rsb("umount", "-f", box.name, check_status=None)
            proxy.close()


def first_difference(got, want):
    return next(((g, w) for g, w in zip(got, want) if g != w), (len(got), len(want)))


def cut_everywhere(world, how, step, seed):
    with behind_proxy(world) as (box, proxy):
        proxy.record()
        results, tree = Script(box, "whole", seed).run()
        n = proxy.record()["requests"]
        check(n > CALLS, f"{n} messages")
        again, tree_again = Script(box, "again", seed).run()
        equal(first_difference(again, results), (CALLS, CALLS), "the script is the same each time")
        equal(tree_again, tree)
        for k in range(1 + seed % step, n + 1, step):
            equal(proxy.command(f"cut-{how} {k}"), "ok")
            got, got_tree = Script(box, f"k{k}", seed).run()
            equal(first_difference(got, results), (CALLS, CALLS), f"seed {seed}, cut {how} message {k} of {n}")
            check(got_tree == tree, f"seed {seed}, cut {how} message {k} of {n}:\n{got_tree}\n--\n{tree}")
            # A run may need a few messages less than the first; what was not cut is not of the next.
            proxy.command("cut-before 0")
            box.sh(f"rm -r k{k}")
        kinds = {e["kind"] for e in box.events()}
        check("down" in kinds, "it was cut")
        check(not kinds & {"unknown", "epoch", "lost"}, kinds)


def test_a_port_that_refuses_is_kept(_world):
    """Of our own proxy: else another program has it when connections are to be taken again, and the link never comes back."""
    target = socket.create_server(("127.0.0.1", 0))
    proxy = harness.DelayProxy(target.getsockname()[1])
    try:
        for _ in range(3):
            proxy.command("refuse on")
            with socket.socket() as other:
                equal(other.connect_ex(("127.0.0.1", proxy.port)), errno.ECONNREFUSED)
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    other.bind(("127.0.0.1", proxy.port))
                except OSError as e:
                    equal(e.errno, errno.EADDRINUSE)
                else:
                    check(False, "the port was given away")
            proxy.command("refuse off")
            socket.create_connection(("127.0.0.1", proxy.port)).close()
    finally:
        proxy.close()
        target.close()


def test_cut_before_every_message(world):
    cut_everywhere(world, "before", harness.how_many(60, 25, 1), 1)


def test_cut_after_every_message(world):
    cut_everywhere(world, "after", harness.how_many(60, 25, 1), 2)


harness.main(globals())
