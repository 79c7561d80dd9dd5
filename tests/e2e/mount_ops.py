# SPDX-License-Identifier: MIT
"""Operations on a mount, each with its result here and over there."""
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import socket
import stat
import struct
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2


def expect_errno(number, fn, *args):
    try:
        fn(*args)
    except OSError as e:
        assert e.errno == number, "errno %d (%s), not %d" % (e.errno, e.strerror, number)
        return
    raise AssertionError("no error, not errno %d" % number)


def put(path, data, mode="wb"):
    with open(path, mode) as f:
        f.write(data)


def get(path):
    with open(path, "rb") as f:
        return f.read()


def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Ops:
    """
    m: the mount, w: the workspace itself. What is changed in the workspace behind the mount's back
    is only seen after a command, so command() runs one that does nothing.
    """

    def __init__(self, mount, workspace, command):
        self.mount = mount
        self.workspace = workspace
        self.command = command

    def m(self, name):
        return os.path.join(self.mount, name)

    def w(self, name):
        return os.path.join(self.workspace, name)

    def test_write_is_there_at_close(self):
        put(self.m("a"), b"hello")
        assert get(self.w("a")) == b"hello"
        assert get(self.m("a")) == b"hello"
        a, b = os.stat(self.m("a")), os.stat(self.w("a"))
        assert (a.st_ino, a.st_size, a.st_mtime_ns, a.st_ctime_ns, a.st_mode) == (
            b.st_ino, b.st_size, b.st_mtime_ns, b.st_ctime_ns, b.st_mode)

    def test_reads_its_own_writes(self):
        with open(self.m("ryw"), "w+b", buffering=0) as f:
            f.write(b"0123456789")
            assert os.fstat(f.fileno()).st_size == 10
            assert os.pread(f.fileno(), 4, 3) == b"3456"
            os.pwrite(f.fileno(), b"XY", 4)
            with open(self.m("ryw"), "rb", buffering=0) as g:
                assert g.read() == b"0123XY6789"
            os.pwrite(f.fileno(), b"end", 20)
            assert os.stat(self.m("ryw")).st_size == 23
        assert get(self.w("ryw")) == b"0123XY6789" + bytes(10) + b"end"

    def test_two_handles_keep_order(self):
        a = os.open(self.m("two"), os.O_CREAT | os.O_RDWR)
        b = os.open(self.m("two"), os.O_RDWR)
        for i in range(50):
            os.pwrite(a if i % 2 else b, b"%03d" % i, 0)
        assert os.pread(a, 3, 0) == b"049"
        os.close(a)
        os.close(b)
        assert get(self.w("two")) == b"049"

    def test_append_lands_at_the_end(self):
        put(self.m("app"), b"one\n")
        put(self.w("app"), b"two\n", "ab")
        self.command()
        put(self.m("app"), b"three\n", "ab")
        assert get(self.w("app")) == b"one\ntwo\nthree\n"

    def test_big_file(self):
        data = os.urandom(7 << 20)
        put(self.m("big"), data)
        assert get(self.w("big")) == data
        put(self.w("big2"), data)
        self.command()
        assert get(self.m("big2")) == data
        with open(self.m("big"), "r+b") as f:
            f.truncate(1000)
        assert get(self.w("big")) == data[:1000]
        with open(self.m("big"), "r+b") as f:
            f.truncate(2000)
        assert get(self.m("big")) == data[:1000] + bytes(1000)

    def test_names(self):
        os.mkdir(self.m("d"), 0o750)
        assert stat.S_IMODE(os.stat(self.w("d")).st_mode) == 0o750
        expect_errno(errno.EEXIST, os.mkdir, self.m("d"))
        put(self.m("d/x"), b"x")
        expect_errno(errno.ENOTEMPTY, os.rmdir, self.m("d"))
        os.rename(self.m("d"), self.m("e"))
        assert get(self.m("e/x")) == b"x"
        expect_errno(errno.ENOENT, os.stat, self.m("d"))
        os.unlink(self.m("e/x"))
        os.rmdir(self.m("e"))
        assert not os.path.exists(self.w("e"))
        expect_errno(errno.ENAMETOOLONG, os.mkdir, self.m("n" * 256))
        os.mkdir(self.m("n" * 255))
        os.rmdir(self.m("n" * 255))
        raw = os.fsencode(self.mount) + b"/\xff\xfe\x80"
        put(raw, b"bytes")
        assert b"\xff\xfe\x80" in os.listdir(os.fsencode(self.workspace))
        os.unlink(raw)

    def test_rename_flags(self):
        put(self.m("r1"), b"1")
        put(self.m("r2"), b"2")
        expect_errno(errno.EEXIST, renameat2, self.m("r1"), self.m("r2"), RENAME_NOREPLACE)
        renameat2(self.m("r1"), self.m("r2"), RENAME_EXCHANGE)
        assert (get(self.m("r1")), get(self.m("r2"))) == (b"2", b"1")
        assert (get(self.w("r1")), get(self.w("r2"))) == (b"2", b"1")
        fd = os.open(self.m("r2"), os.O_RDONLY)
        os.rename(self.m("r1"), self.m("r2"))
        assert os.read(fd, 9) == b"1"
        assert os.fstat(fd).st_nlink == 0
        os.close(fd)
        assert get(self.m("r2")) == b"2"

    def test_hard_links(self):
        put(self.m("l1"), b"linked")
        os.link(self.m("l1"), self.m("l2"))
        a, b = os.stat(self.m("l1")), os.stat(self.m("l2"))
        assert a.st_ino == b.st_ino and a.st_nlink == b.st_nlink == 2
        put(self.m("l2"), b"changed")
        assert get(self.m("l1")) == b"changed"
        os.unlink(self.m("l1"))
        assert os.stat(self.m("l2")).st_nlink == 1
        expect_errno(errno.EEXIST, os.link, self.m("l2"), self.m("l2"))

    def test_open_unlinked(self):
        fd = os.open(self.m("gone"), os.O_CREAT | os.O_RDWR)
        os.write(fd, b"still")
        os.unlink(self.m("gone"))
        assert os.listdir(self.mount) == os.listdir(self.mount)
        assert "gone" not in os.listdir(self.mount)
        os.write(fd, b" here")
        assert os.fstat(fd).st_nlink == 0 and os.fstat(fd).st_size == 10
        assert os.pread(fd, 20, 0) == b"still here"
        os.ftruncate(fd, 5)
        assert os.pread(fd, 20, 0) == b"still"
        os.fsync(fd)
        os.close(fd)

    def test_new_file_under_an_old_name(self):
        for i in range(20):
            put(self.m("again"), b"%d" % i)
            assert get(self.m("again")) == b"%d" % i
            os.unlink(self.m("again"))

    def test_lock_write_rename(self):
        for i in range(30):
            fd = os.open(self.m("HEAD.lock"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(fd, b"ref %d\n" % i)
            os.fsync(fd)
            os.close(fd)
            os.rename(self.m("HEAD.lock"), self.m("HEAD"))
            assert get(self.m("HEAD")) == b"ref %d\n" % i
        assert get(self.w("HEAD")) == b"ref 29\n"

    def test_symlinks(self):
        os.mkdir(self.m("sd"))
        put(self.m("sd/t"), b"target")
        os.symlink("sd/t", self.m("s1"))
        assert os.readlink(self.m("s1")) == "sd/t" and get(self.m("s1")) == b"target"
        os.symlink("../HEAD", self.m("sd/up"))
        assert os.readlink(self.m("sd/up")) == "../HEAD"
        os.symlink(self.w("sd/t"), self.w("sd/abs"))
        self.command()
        assert os.readlink(self.m("sd/abs")) == "../sd/t"
        assert get(self.m("sd/abs")) == b"target"
        for target in "/etc/passwd", "../../etc/passwd", "sd/../../x":
            os.symlink(target, self.w("out"))
            self.command()
            expect_errno(errno.EACCES, os.readlink, self.m("out"))
            expect_errno(errno.EACCES, get, self.m("out"))
            os.unlink(self.m("out"))

    def test_special_files(self):
        os.mkfifo(self.m("fifo"), 0o600)
        assert stat.S_ISFIFO(os.stat(self.w("fifo")).st_mode)
        s = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(self.mount)
        try:
            s.bind("sock")
        finally:
            os.chdir(here)
        assert stat.S_ISSOCK(os.stat(self.w("sock")).st_mode)
        s.close()
        got = []
        reader = threading.Thread(target=lambda: got.append(get(self.m("fifo"))))
        reader.start()
        put(self.m("fifo"), b"through")
        reader.join(5)
        assert got == [b"through"]

    def test_attributes(self):
        put(self.m("at"), b"x")
        os.chmod(self.m("at"), 0o640)
        assert stat.S_IMODE(os.stat(self.w("at")).st_mode) == 0o640
        os.utime(self.m("at"), ns=(1234567890123456789, 987654321987654321))
        a, b = os.stat(self.m("at")), os.stat(self.w("at"))
        assert a.st_mtime_ns == b.st_mtime_ns == 987654321987654321
        assert b.st_atime_ns == 1234567890123456789
        os.utime(self.m("at"))
        assert os.stat(self.m("at")).st_mtime_ns == os.stat(self.w("at")).st_mtime_ns
        expect_errno(errno.EPERM, os.chown, self.m("at"), 12345, -1)
        os.chown(self.m("at"), os.getuid(), os.getgid())
        v = os.statvfs(self.mount)
        assert v.f_blocks and v.f_namemax == 255

    def test_xattrs(self):
        put(self.m("xa"), b"")
        os.setxattr(self.m("xa"), "user.k", b"v" * 1000)
        assert os.getxattr(self.w("xa"), "user.k") == b"v" * 1000
        assert os.getxattr(self.m("xa"), "user.k") == b"v" * 1000
        assert os.listxattr(self.m("xa")) == ["user.k"]
        expect_errno(errno.EEXIST, os.setxattr, self.m("xa"), "user.k", b"", os.XATTR_CREATE)
        os.removexattr(self.m("xa"), "user.k")
        expect_errno(errno.ENODATA, os.getxattr, self.m("xa"), "user.k")
        assert os.listxattr(self.m("xa")) == []

    def test_sparse_and_fallocate(self):
        fd = os.open(self.m("sp"), os.O_CREAT | os.O_RDWR)
        os.posix_fallocate(fd, 0, 8192)
        assert os.fstat(fd).st_size == 8192
        os.pwrite(fd, b"data", 1 << 20)
        assert os.lseek(fd, 65536, os.SEEK_DATA) == 1 << 20
        assert os.lseek(fd, 1 << 20, os.SEEK_HOLE) >= (1 << 20) + 4
        libc.fallocate(fd, 3, ctypes.c_long(1 << 20), ctypes.c_long(4096))
        assert os.pread(fd, 4, 1 << 20) == bytes(4)
        os.close(fd)

    def test_copy_file_range(self):
        data = os.urandom(300000)
        put(self.m("c1"), data)
        a = os.open(self.m("c1"), os.O_RDONLY)
        b = os.open(self.m("c2"), os.O_CREAT | os.O_RDWR)
        left = len(data)
        while left:
            n = os.copy_file_range(a, b, left)
            assert n > 0
            left -= n
        assert os.fstat(b).st_size == len(data)
        os.close(a)
        os.close(b)
        assert get(self.m("c2")) == data and get(self.w("c2")) == data

    def test_mmap(self):
        put(self.m("mm"), bytes(20000))
        with open(self.m("mm"), "r+b") as f:
            with mmap.mmap(f.fileno(), 0) as m:
                m[0:5] = b"first"
                m[15000:15004] = b"last"
                m.flush()
                assert get(self.w("mm"))[15000:15004] == b"last"
        assert get(self.w("mm"))[:5] == b"first"
        put(self.m("idx"), b"index" * 5000)
        with open(self.m("idx"), "rb") as f:
            with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                assert m[:] == b"index" * 5000

    def test_locks(self):
        put(self.m("lk"), b"x" * 100)
        f = open(self.m("lk"), "r+b")
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                g = open(self.m("lk"), "r+b")
                expect_errno(errno.EAGAIN, fcntl.lockf, g, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 22)
                fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 50)
                os.write(w, b"r")
                fcntl.lockf(g, fcntl.LOCK_EX, 10, 20)
                os.write(w, b"g")
                code = 0
            finally:
                os._exit(code)
        assert os.read(r, 1) == b"r"
        fcntl.lockf(f, fcntl.LOCK_UN, 10, 20)
        assert os.read(r, 1) == b"g"
        assert os.waitpid(pid, 0)[1] == 0
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(f, fcntl.LOCK_EX)
        with open(self.m("lk")) as g:
            expect_errno(errno.EAGAIN, fcntl.flock, g, fcntl.LOCK_SH | fcntl.LOCK_NB)
            f.close()
            fcntl.flock(g, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.close(r)
        os.close(w)

    def test_lock_circles(self):
        """EDEADLK, the holder's number and the end of a dead holder's locks: as on a file system of the kernel."""

        def lock_of(name, there=False):
            return os.open(self.w(name) if there else self.m(name), os.O_RDWR)

        def get_lock(fd):
            flock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            return struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, flock))

        def rival(first, there):
            """Has first, waits until it is told, then waits for the other one; its exit status says how that ended."""
            said, say = os.pipe()
            told, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    fds = [lock_of(name, there) for name in "ab"]
                    fcntl.lockf(fds[first], fcntl.LOCK_EX)
                    os.write(say, b"h")
                    os.read(told, 1)
                    fcntl.lockf(fds[1 - first], fcntl.LOCK_EX)
                    code = 0
                except OSError as e:
                    code = e.errno
                finally:
                    os._exit(code)
            assert os.read(said, 1) == b"h"
            os.close(said), os.close(say), os.close(told)
            return pid, tell

        put(self.m("a"), b"a")
        put(self.m("b"), b"b")
        self.command()
        for there in (False, True):
            one, tell_one = rival(0, False)
            two, tell_two = rival(1, there)
            a, b = lock_of("a"), lock_of("b")
            assert get_lock(a)[0::4] == (fcntl.F_WRLCK, one), (get_lock(a), one)
            assert get_lock(b)[0] == fcntl.F_WRLCK and (there or get_lock(b)[4] == two)
            os.write(tell_one, b"g")
            time.sleep(0.2)
            os.write(tell_two, b"g")
            # One of the two gets on because the other does not.
            codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (one, two))
            assert codes == [0, errno.EDEADLK], codes
            one, tell = rival(0, there)
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)
            fcntl.lockf(a, fcntl.LOCK_EX)
            fcntl.lockf(a, fcntl.LOCK_UN)
            for fd in (a, b, tell_one, tell_two, tell):
                os.close(fd)

    def test_big_directory(self):
        os.mkdir(self.w("many"))
        n = 10000
        for i in range(n):
            os.close(os.open(self.w("many/f%05d" % i), os.O_CREAT | os.O_WRONLY))
        self.command()
        seen = 0
        with os.scandir(self.m("many")) as it:
            for entry in it:
                os.unlink(entry.path)
                seen += 1
        assert seen == n, "%d of %d" % (seen, n)
        assert os.listdir(self.w("many")) == []
        os.rmdir(self.m("many"))

    def test_rewind_shows_the_present(self):
        os.mkdir(self.m("rw"))
        put(self.m("rw/a"), b"")
        fd = os.open(self.m("rw"), os.O_RDONLY)
        assert os.listdir(fd) == ["a"]
        put(self.m("rw/b"), b"")
        assert sorted(os.listdir(fd)) == ["a", "b"]
        os.close(fd)

    def test_errors_come_at_close(self):
        expect_errno(errno.ENOENT, get, self.m("absent"))
        expect_errno(errno.EISDIR, put, self.mount, b"")
        put(self.m("ro"), b"x")
        fd = os.open(self.m("ro"), os.O_RDONLY)
        expect_errno(errno.EBADF, os.write, fd, b"x")
        os.close(fd)

    def run(self):
        names = [n for n in sorted(dir(self)) if n.startswith("test_")]
        failed = 0
        for name in names:
            try:
                getattr(self, name)()
            except Exception as e:  # the others are to run as well
                failed += 1
                import traceback
                print("not ok", name, repr(e))
                traceback.print_exc()
            else:
                print("ok", name, flush=True)
        return failed
