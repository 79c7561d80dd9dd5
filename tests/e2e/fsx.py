# SPDX-License-Identifier: MIT
"""Random reads, writes, truncations, mappings and copies of one file against a plain bytearray."""

import ctypes
import mmap
import os
import random

MAX = 400000
libc = ctypes.CDLL(None, use_errno=True)


class Fsx:
    """path: on the mount; far: the same file over there; command(): lets changes of far be seen."""

    def __init__(self, path, far, command, seed):
        self.path, self.far, self.command = path, far, command
        self.random = random.Random(seed)
        self.want = bytearray()
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for _ in range(2)]

    def fd(self):
        return self.random.choice(self.fds)

    def place(self):
        offset = self.random.randrange(MAX)
        return offset, self.random.choice((1, 7, 4096, 61440, 131072, self.random.randrange(1, 70000)))

    def grow(self, size):
        if len(self.want) < size:
            self.want += bytes(size - len(self.want))

    def op_write(self):
        offset, size = self.place()
        data = self.random.randbytes(size)
        assert os.pwrite(self.fd(), data, offset) == size
        self.grow(offset)
        self.want[offset:offset + size] = data

    def op_small_writes(self):
        offset = self.random.randrange(MAX)
        fd = self.fd()
        for _ in range(self.random.randrange(1, 30)):
            data = self.random.randbytes(self.random.randrange(1, 2000))
            os.pwrite(fd, data, offset)
            self.grow(offset)
            self.want[offset:offset + len(data)] = data
            offset += len(data)

    def op_read(self):
        offset, size = self.place()
        assert os.pread(self.fd(), size, offset) == self.want[offset:offset + size], (offset, size)

    def op_truncate(self):
        size = self.random.randrange(MAX)
        if self.random.random() < 0.5:
            os.ftruncate(self.fd(), size)
        else:
            os.truncate(self.path, size)
        self.grow(size)
        del self.want[size:]

    def op_stat(self):
        assert os.fstat(self.fd()).st_size == len(self.want)
        assert os.stat(self.path).st_size == len(self.want)

    def op_map(self):
        if not self.want:
            return
        with mmap.mmap(self.fd(), len(self.want)) as m:
            offset = self.random.randrange(len(self.want))
            size = min(self.random.randrange(1, 20000), len(self.want) - offset)
            if self.random.random() < 0.5:
                data = self.random.randbytes(size)
                m[offset:offset + size] = data
                self.want[offset:offset + size] = data
            else:
                assert m[offset:offset + size] == self.want[offset:offset + size]

    def op_punch(self):
        offset, size = self.place()
        if libc.fallocate(self.fd(), 3, ctypes.c_long(offset), ctypes.c_long(size)) == 0:
            end = min(offset + size, len(self.want))
            if offset < end:
                self.want[offset:end] = bytes(end - offset)

    def op_allocate(self):
        offset, size = self.place()
        os.posix_fallocate(self.fd(), offset, size)
        self.grow(offset + size)

    def op_copy(self):
        half = len(self.want) // 2
        size = min(half, self.random.randrange(1, 50000))
        if size < 1:
            return
        n = os.copy_file_range(self.fds[0], self.fds[1], size, 0, half)
        self.want[half:half + n] = self.want[:n]

    def op_append(self):
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        for _ in range(self.random.randrange(1, 4)):
            data = self.random.randbytes(self.random.randrange(1, 3000))
            os.write(fd, data)
            self.want += data
        os.close(fd)

    def op_reopen(self):
        i = self.random.randrange(2)
        os.close(self.fds[i])
        self.fds[i] = os.open(self.path, os.O_RDWR)

    def op_fsync(self):
        os.fsync(self.fd())

    def op_over_there(self):
        """Both ways of the barrier: it sees what we wrote, we see what it wrote."""
        self.command()
        with open(self.far, "r+b") as f:
            assert f.read() == self.want
            data = self.random.randbytes(self.random.randrange(1, 5000))
            offset = self.random.randrange(len(self.want) + 1)
            f.seek(offset)
            f.write(data)
            self.want[offset:offset + len(data)] = data
            if self.random.random() < 0.3:
                f.truncate(offset)
                del self.want[offset:]
        self.command()

    def run(self, n):
        ops = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("op_")]
        weights = [0.3 if op.__name__ == "op_over_there" else 2 for op in ops]
        trail = []
        for _ in range(n):
            op = self.random.choices(ops, weights)[0]
            trail.append(op.__name__)
            try:
                op()
            except BaseException:
                print("after", trail[-12:])
                raise
        for fd in self.fds:
            os.close(fd)
        with open(self.far, "rb") as f:
            assert f.read() == self.want
