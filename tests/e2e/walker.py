# SPDX-License-Identifier: MIT
"""Random operations on two trees that must agree."""

import os
import random
import threading

import mount_ops


class Walker:
    """Random operations on the mount, each also on a local directory: both say the same."""

    def __init__(self, here, model, seed):
        self.roots = (here, model)
        self.random = random.Random(seed)
        self.held = []
        self.n = 0
        self.doing = None  # with which names
        for root in self.roots:
            os.mkdir(root)

    def both(self, fn):
        results = []
        for which, root in enumerate(self.roots):
            try:
                results.append(fn(root, which))
            except OSError as e:
                results.append(("errno", e.errno))
        assert results[0] == results[1], (self.n, self.doing, results)
        return results[0]

    def name(self):
        r = self.random
        name = r.choice(["", "", "/d0", "/d1", "/d1/d0"]) + f"/{r.choice('abcdefgh')}"
        self.doing.append(name)
        return name

    def step(self):
        self.n += 1
        self.doing = [self.random.choice(
            ["put", "put", "append", "mkdir", "rmdir", "unlink", "rename", "link", "symlink",
             "chmod", "truncate", "look", "list", "hold", "hold", "use", "use", "use", "drop"])]
        getattr(self, self.doing[0])()

    def put(self):
        name, data = self.name(), self.random.randbytes(self.random.choice([0, 10, 5000, 200000]))
        self.both(lambda root, _: mount_ops.put(root + name, data))

    def append(self):
        name, data = self.name(), self.random.randbytes(50)
        self.both(lambda root, _: mount_ops.put(root + name, data, "ab"))

    def mkdir(self):
        name = self.random.choice(["/d0", "/d1", "/d1/d0", self.name()])
        self.both(lambda root, _: os.mkdir(root + name))

    def rmdir(self):
        name = self.name()
        self.both(lambda root, _: os.rmdir(root + name))

    def unlink(self):
        name = self.name()
        self.both(lambda root, _: os.unlink(root + name))

    def rename(self):
        a, c = self.name(), self.name()
        self.both(lambda root, _: os.rename(root + a, root + c))

    def link(self):
        a, c = self.name(), self.name()
        self.both(lambda root, _: os.link(root + a, root + c, follow_symlinks=False))

    def symlink(self):
        name = self.name()
        self.both(lambda root, _: os.symlink("target", root + name))

    def chmod(self):
        name, mode = self.name(), self.random.choice([0o600, 0o644, 0o755])
        self.both(lambda root, _: os.chmod(root + name, mode))

    def truncate(self):
        name, size = self.name(), self.random.randrange(10000)
        self.both(lambda root, _: os.truncate(root + name, size))

    def look(self):
        name = self.name()

        def look(root, _):
            st = os.lstat(root + name)
            is_dir = st.st_mode & 0o170000 == 0o040000
            return st.st_mode, 0 if is_dir else st.st_size, 0 if is_dir else st.st_nlink
        self.both(look)

    def list(self):
        name = self.random.choice(["", "/d0", "/d1"])
        self.both(lambda root, _: sorted(os.listdir(root + name)))

    def hold(self):
        if len(self.held) > 8:
            return
        name = self.name()
        flags = self.random.choice([os.O_CREAT | os.O_EXCL, os.O_CREAT, 0, os.O_APPEND | os.O_CREAT])
        fds = [None, None]

        def hold(root, which):
            fds[which] = os.open(root + name, flags | os.O_RDWR)
        if self.both(hold) is None:
            self.held.append(fds)

    def use(self):
        if not self.held:
            return
        r = self.random
        fds = r.choice(self.held)
        offset, data = r.randrange(100000), r.randbytes(r.choice([1, 100, 4096, 70000]))
        what = r.choice(["write", "write", "read", "stat", "sync", "append"])

        def use(_, which):
            fd = fds[which]
            if what == "write":
                return os.pwrite(fd, data, offset)
            if what == "append":
                return os.write(fd, data)
            if what == "read":
                return os.pread(fd, len(data), offset)
            if what == "sync":
                return os.fsync(fd)
            st = os.fstat(fd)
            return st.st_size, st.st_nlink, st.st_mode
        self.doing.append(what)
        self.both(use)

    def drop(self):
        if self.held:
            fds = self.held.pop(self.random.randrange(len(self.held)))
            self.both(lambda _, which: os.close(fds[which]))

    def finish(self):
        while self.held:
            self.drop()


class Walking:
    """Walkers at work, each on a thread, until one of them sees a difference or the end comes."""

    def __init__(self, walkers, seed):
        self.seed = seed
        self.failed = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.walk, args=(w,), daemon=True) for w in walkers]
        for thread in self.threads:
            thread.start()

    def walk(self, walker):
        try:
            while not self.stop.is_set():
                walker.step()
            walker.finish()
        except BaseException as e:
            self.failed.append((self.seed, walker.n, repr(e)))
            self.stop.set()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads), "a process hangs"
        assert not self.failed, self.failed


def tree(root):
    found = {}
    for at, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            key = os.path.relpath(path, root)
            if os.path.islink(path):
                found[key] = (st.st_mode, os.readlink(path))
            elif os.path.isdir(path):
                found[key] = (st.st_mode,)
            else:
                found[key] = (st.st_mode, st.st_nlink, mount_ops.get(path))
    return found
