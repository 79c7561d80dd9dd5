# SPDX-License-Identifier: MIT
"""Attributes that do not move by themselves, and files that are moved, replaced and removed over there while they
are open here or a request names them: the right file or an error, never another one.
"""

import calendar
import collections
import contextlib
import ctypes
import errno
import mmap
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import harness  # noqa: E402  (found by the line above)
import mountbox  # noqa: E402
from mount_ops import get, put  # noqa: E402
from mountbox import box  # noqa: E402

GONE = (errno.ENOENT, errno.ESTALE)


def attributes(st):
    return {k: getattr(st, k) for k in ("st_mode", "st_ino", "st_nlink", "st_size", "st_mtime_ns", "st_ctime_ns",
                                        "st_blocks")}


def from_inside(b, name):
    """What stat(1) says over there; it runs in the workspace."""
    words = b.command("stat", "-c", "%f %i %h %s %b %y|%z", name).decode().strip()
    head, ctime = words.split("|")
    mode, ino, nlink, size, blocks, mtime = head.split(None, 5)

    def ns(text):
        date, clock, zone = text.split()
        seconds, fraction = clock.split(".")
        moment = time.strptime(f"{date} {seconds} {zone}", "%Y-%m-%d %H:%M:%S %z")
        return (calendar.timegm(moment) - moment.tm_gmtoff) * 10**9 + int(fraction)

    return {"st_mode": int(mode, 16), "st_ino": int(ino), "st_nlink": int(nlink), "st_size": int(size),
            "st_mtime_ns": ns(mtime), "st_ctime_ns": ns(ctime), "st_blocks": int(blocks)}


def changes(b):
    """Each leaves something behind whose attributes are known from the reply alone."""
    m = b.mount
    put(f"{m}/created", b"")
    put(f"{m}/written", b"w" * 5000)
    put(f"{m}/changed", b"c")
    os.chmod(f"{m}/changed", 0o640)
    put(f"{m}/from", b"renamed")
    os.rename(f"{m}/from", f"{m}/renamed")
    os.mkdir(f"{m}/dir")
    put(f"{m}/dir/in", b"x")
    put(f"{m}/linked", b"l")
    os.link(f"{m}/linked", f"{m}/other")
    os.symlink("linked", f"{m}/symlink")
    put(f"{m}/timed", b"t")
    os.utime(f"{m}/timed", ns=(1, 1234567890123456789))
    put(f"{m}/cut", b"t" * 10000)
    os.truncate(f"{m}/cut", 77)
    os.setxattr(f"{m}/cut", "user.k", b"v")
    put(f"{m}/over", b"old")
    put(f"{m}/over.new", b"newer")
    os.rename(f"{m}/over.new", f"{m}/over")
    with open(f"{m}/appended", "ab", buffering=0) as f:
        for i in range(10):
            f.write(b"%d" % i)
    fd = os.open(f"{m}/sparse", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"s", 1 << 20)
    os.posix_fallocate(fd, 0, 4096)
    os.close(fd)


def test_attributes_do_not_move(tmp):
    for options in (), ("sync",):
        with box(tmp, *options) as b:
            changes(b)
            names = [*sorted(os.listdir(b.mount)), "dir/in"]

            def look():
                return {n: attributes(os.lstat(f"{b.mount}/{n}")) for n in names}

            first = look()
            assert look() == first
            time.sleep(2)
            assert look() == first
            over_there = {n: attributes(os.lstat(f"{b.workspace}/{n}")) for n in names}
            for n in names:
                assert over_there[n] == first[n], (n, first[n], over_there[n])
            for n in names:
                inside = from_inside(b, n)
                assert inside == first[n], (n, first[n], inside)
            assert look() == first
            b.remount()
            assert look() == first
            for n in names:
                if os.path.isfile(f"{b.mount}/{n}") and not os.path.islink(f"{b.mount}/{n}"):
                    get(f"{b.mount}/{n}")
            assert look() == first


def test_attributes_of_what_is_open(tmp):
    with box(tmp) as b:
        fd = os.open(f"{b.mount}/f", os.O_CREAT | os.O_RDWR)
        for i in range(20):
            os.write(fd, b"x" * 100)
            st = os.fstat(fd)
            assert st.st_size == 100 * (i + 1)
            assert attributes(os.stat(f"{b.mount}/f")) == attributes(st)
            assert attributes(os.stat(f"{b.workspace}/f")) == attributes(st)
        os.close(fd)
        assert attributes(os.stat(f"{b.mount}/f")) == attributes(st)


def test_the_same_inode_number_is_a_new_node(tmp):
    with box(tmp) as b:
        path, over_there = f"{b.mount}/f", f"{b.workspace}/f"
        put(path, b"first")
        twice = 0
        for i in range(30):
            # The first free number is given out again by ext4 as soon as nobody holds the old file.
            old = os.stat(path)
            before = get(path)
            held = os.open(path, os.O_RDONLY) if i % 2 else None
            b.command("sh", "-c", f"rm f; echo number {i} > f")
            new = os.stat(path)
            assert attributes(new) == attributes(os.stat(over_there))
            twice += new.st_ino == old.st_ino
            if held is not None:
                assert os.pread(held, 100, 0) == before and os.fstat(held).st_nlink == 0
                os.close(held)
            assert get(path) == b"number %d\n" % i
            put(path, b"written %d" % i)
            assert get(over_there) == b"written %d" % i
        print(f"     {twice} times the same inode number")


def test_what_is_open_here_stays_that(tmp):
    with box(tmp) as b:
        m, w = b.mount, b.workspace
        put(f"{m}/moved", b"moved")
        put(f"{m}/replaced", b"replaced")
        put(f"{m}/removed", b"removed")
        os.mkdir(f"{m}/dir")
        put(f"{m}/dir/in", b"in")
        fds = {n: os.open(f"{m}/{n}", os.O_RDWR) for n in ("moved", "replaced", "removed", "dir/in")}
        inos = {n: os.fstat(fd).st_ino for n, fd in fds.items()}
        b.command("sh", "-c", "mv moved away; echo new > moved; echo other > r; mv r replaced; "
                  "rm removed; echo again > removed; mv dir dir2; mkdir dir; echo fake > dir/in")
        for n, fd in fds.items():
            assert os.fstat(fd).st_ino == inos[n]
            assert os.pread(fd, 20, 0) == n.rsplit("/", maxsplit=1)[-1].encode(), n
            assert os.pwrite(fd, b"W", 0) == 1
            os.fsync(fd)
            os.close(fd)
        assert get(f"{w}/away") == b"Woved" and get(f"{w}/moved") == b"new\n"
        assert get(f"{w}/replaced") == b"other\n" and get(f"{w}/removed") == b"again\n"
        assert get(f"{w}/dir2/in") == b"Wn" and get(f"{w}/dir/in") == b"fake\n"
        for n, want in (("away", b"Woved"), ("moved", b"new\n"), ("replaced", b"other\n"), ("removed", b"again\n"),
                        ("dir2/in", b"Wn"), ("dir/in", b"fake\n")):
            assert get(f"{m}/{n}") == want, n


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]


def map_and_swap(fd, size, at, new):
    """All bytes, of a mapping; then new is stored there. Python's own mmap asks for the size first; a child may die."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        base = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        with open(w, "wb") as f:
            f.write(ctypes.string_at(base, size))
        ctypes.memmove(base + at, new, len(new))
        os._exit(0)
    os.close(w)
    with open(r, "rb") as f:
        data = f.read()
    assert os.waitpid(pid, 0)[1] == 0
    return data


def test_what_is_open_here_grows_over_there(tmp):
    """The kernel does not ask for the size of a file before it maps or copies it."""
    with box(tmp) as b:
        m, w = b.mount, b.workspace
        sizes = {"page": 4097, "within": 300, "over": 3 * 4096 + 10, "far": (1 << 20) + 1}
        fds = {}
        for n in sizes:
            put(f"{m}/{n}", b"0" * 100)
            fds[n] = os.open(f"{m}/{n}", os.O_RDWR)
            assert os.pread(fds[n], 200, 0) == b"0" * 100
        for number in b"1", b"2":
            b.command("sh", "-c", " ".join(f"head -c {n} /dev/zero | tr '\\0' {int(number)} > {f};" for f, n in sizes.items()))
            for n, size in sizes.items():
                data = map_and_swap(fds[n], size, size - 1, b"L")
                assert data == number * size, (n, len(data), data[-1:])
                os.fsync(fds[n])
                assert get(f"{w}/{n}") == number * (size - 1) + b"L", n
                os.truncate(f"{m}/{n}", 10)
        b.command("sh", "-c", "for n in within over far; do cat page far within over > new; cat new > $n; done")
        for n in "within", "over", "far":
            want = get(f"{w}/{n}")
            out = os.open(f"{m}/copy-{n}", os.O_CREAT | os.O_RDWR)
            at = 0
            while at < len(want):
                copied = os.copy_file_range(fds[n], out, len(want) - at, at, at)
                assert copied, (n, at, len(want))
                at += copied
            os.close(out)
            assert get(f"{w}/copy-{n}") == want
            assert attributes(os.fstat(fds[n])) == attributes(os.stat(f"{w}/{n}"))
        for fd in fds.values():
            os.close(fd)


def test_directories_that_move_over_there(tmp):
    with box(tmp) as b:
        m, w = b.mount, b.workspace
        for n in "a", "b", "c":
            os.makedirs(f"{m}/{n}/sub")
            put(f"{m}/{n}/mark", n.encode())
            put(f"{m}/{n}/sub/mark", n.encode() * 2)
        fds = {n: os.open(f"{m}/{n}", os.O_RDONLY) for n in "abc"}
        os.chdir(f"{m}/a/sub")
        try:
            b.command("sh", "-c", "mkdir deep; mv a deep/x; mv b a; rm -r c; mkdir c; echo fake > c/mark")
            assert get("mark") == b"aa"
            with contextlib.suppress(FileNotFoundError):
                # Whether the kernel still knows the way up is its own affair; it is never another one.
                assert get("../mark") == b"a"
            put("new", b"n")
            assert get(f"{w}/deep/x/sub/new") == b"n"
        finally:
            os.chdir("/")

        def by_fd(n, name):
            fd = os.open(name, os.O_RDONLY, dir_fd=fds[n])
            try:
                return os.read(fd, 10)
            finally:
                os.close(fd)

        assert by_fd("a", "mark") == b"a" and by_fd("b", "mark") == b"b"
        assert by_fd("a", "sub/mark") == b"aa"
        for call in (lambda: by_fd("c", "mark"), lambda: os.mkdir("x", dir_fd=fds["c"]),
                     lambda: os.rename("mark", "n", src_dir_fd=fds["c"], dst_dir_fd=fds["c"])):
            try:
                call()
                raise AssertionError("a removed directory took a call")
            except OSError as e:
                assert e.errno in GONE, e
        assert os.listdir(f"{w}/c") == ["mark"]
        os.mkdir("made", dir_fd=fds["b"])
        assert os.path.isdir(f"{w}/a/made")
        os.unlink("mark", dir_fd=fds["a"])
        assert sorted(os.listdir(f"{w}/deep/x")) == ["sub"]
        assert sorted(os.listdir(fds["b"])) == ["made", "mark", "sub"]
        for fd in fds.values():
            os.close(fd)
        assert get(f"{m}/a/mark") == b"b" and get(f"{m}/deep/x/sub/mark") == b"aa"


def test_requests_under_way_mean_what_was_there(tmp):
    """The sidecar stands still; what requests name changes; then it goes on."""
    with box(tmp) as b:
        m, w = b.mount, b.workspace
        for n in "d", "e":
            os.mkdir(f"{m}/{n}")
            put(f"{m}/{n}/f", n.encode())
        b.command()  # nothing is cached now
        dir_fd = os.open(f"{m}/d", os.O_RDONLY)
        file_fd = os.open(f"{m}/d/f", os.O_RDWR)
        os.pread(file_fd, 1, 0)
        results = {}

        def start(name, fn):
            def run():
                try:
                    results[name] = fn()
                except OSError as e:
                    results[name] = e.errno
            thread = threading.Thread(target=run)
            thread.start()
            return thread

        def read_there(name):
            fd = os.open(name, os.O_RDONLY, dir_fd=dir_fd)
            data = os.read(fd, 10)
            os.close(fd)
            return data

        os.kill(b.sidecar.pid, signal.SIGSTOP)
        threads = [
            start("read", lambda: read_there("f")),
            start("mkdir", lambda: os.mkdir("made", dir_fd=dir_fd)),
            start("write", lambda: (os.pwrite(file_fd, b"W", 0), os.fsync(file_fd))),
            start("absent", lambda: os.stat("nothing", dir_fd=dir_fd)),
            start("list", lambda: sorted(os.listdir(dir_fd))),
        ]
        time.sleep(0.3)
        os.rename(f"{w}/d", f"{w}/gone")
        os.rename(f"{w}/e", f"{w}/d")
        os.kill(b.sidecar.pid, signal.SIGCONT)
        for t in threads:
            t.join(30)
            assert not t.is_alive()
        assert results["read"] in (b"d", b"W", errno.ESTALE), results
        assert results["absent"] == errno.ENOENT, results
        assert sorted(os.listdir(f"{w}/d")) == ["f"] and get(f"{w}/d/f") == b"e", results
        assert results["mkdir"] is None and os.path.isdir(f"{w}/gone/made"), results
        assert get(f"{w}/gone/f") == b"W"
        assert results["list"] in (["f"], ["f", "made"]), results
        os.close(dir_fd)
        os.close(file_fd)


SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
n = 0
while not os.path.exists("stop"):
    for a, b in (b"x", b"y"), (b"p", b"q"):
        libc.renameat2(-100, a, -100, b, 2)
    n += 1
print(n)
"""


def hammer_directories(b, seconds):
    """Opens x; what is found by that descriptor is of the directory that it is."""
    n = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            fd = os.open(f"{b.mount}/x", os.O_RDONLY | os.O_DIRECTORY)
        except OSError as e:
            assert e.errno in GONE, e
            continue
        ino = str(os.fstat(fd).st_ino)
        try:
            mark = os.open("mark", os.O_RDONLY, dir_fd=fd)
            assert os.read(mark, 30).decode() == ino
            os.close(mark)
            made = os.open(f"by-{n}-{ino}", os.O_CREAT | os.O_WRONLY | os.O_EXCL, dir_fd=fd)
            os.write(made, ino.encode())
            os.close(made)
            if n % 3 == 0:
                os.unlink(f"by-{n}-{ino}", dir_fd=fd)
            n += 1
        except OSError as e:
            assert e.errno in GONE, e
        finally:
            os.close(fd)
    return n


def hammer_files(b, seconds):
    n = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            fd = os.open(f"{b.mount}/p", os.O_RDWR)
            ino = str(os.fstat(fd).st_ino).encode()
            assert os.pread(fd, 30, 0).startswith(ino)
            os.pwrite(fd, ino + b" " + ino, 0)
            os.close(fd)
            n += 1
        except OSError as e:
            assert e.errno in GONE, e
    return n


MOVE = """
import os
while not os.path.exists("stop"):
    os.rename("A/B/C", "C")
    os.rename("C", "A/B/C")
"""


def test_a_link_in_a_directory_that_moves(tmp):
    """From where it is seen it stays inside; from where the directory goes meanwhile it would lead out of the mount."""
    with box(tmp) as b:
        outside = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(b.mount))), "outside")
        os.makedirs(outside, exist_ok=True)
        put(f"{outside}/f", b"out")
        for name in ("A/B/C", "outside"):
            os.makedirs(f"{b.workspace}/{name}")
        put(f"{b.workspace}/outside/f", b"in")
        os.symlink("../../../outside", f"{b.workspace}/A/B/C/l")
        end = time.monotonic() + harness.how_many(4, 4, 20)
        seen = collections.Counter()

        def move():
            b.command("python3", "-c", MOVE)

        def look():
            while time.monotonic() < end:
                for path in ("C", "A/B/C"):
                    with contextlib.suppress(OSError):
                        os.stat(f"{b.mount}/{path}")

        threads = [threading.Thread(target=fn) for fn in (move, look, look)]
        for t in threads:
            t.start()
        while time.monotonic() < end:
            try:
                seen[get(f"{b.mount}/A/B/C/l/f")] += 1
            except OSError as e:
                seen[errno.errorcode[e.errno]] += 1
        put(f"{b.workspace}/stop", b"")
        for t in threads:
            t.join()
        print(f"     {dict(seen)}")
        assert seen[b"in"] > 0 and seen[b"out"] == 0, seen


def test_names_that_change_places_all_the_time(tmp):
    with box(tmp) as b:
        for n in "x", "y":
            os.mkdir(f"{b.workspace}/{n}")
            put(f"{b.workspace}/{n}/mark", str(os.stat(f"{b.workspace}/{n}").st_ino).encode())
        for n in "p", "q":
            put(f"{b.workspace}/{n}", b"")
            put(f"{b.workspace}/{n}", str(os.stat(f"{b.workspace}/{n}").st_ino).encode())
        b.command()
        done = []
        swapper = threading.Thread(target=lambda: done.append(b.command("python3", "-c", SWAP)))
        swapper.start()
        counts = []
        errors = []

        def guarded(fn):
            try:
                counts.append(fn(b, harness.how_many(3, 3, 20)))
            except BaseException as e:
                errors.append(repr(e))

        hammers = [threading.Thread(target=guarded, args=(fn,)) for fn in (hammer_directories, hammer_files)]
        for t in hammers:
            t.start()
        for t in hammers:
            t.join()
        put(f"{b.workspace}/stop", b"")
        swapper.join(30)
        assert not errors, errors
        print(f"     {counts} rounds during {int(done[0])} exchanges")
        assert min(counts) > 0
        for n in "x", "y":
            ino = str(os.stat(f"{b.workspace}/{n}").st_ino)
            for name in os.listdir(f"{b.workspace}/{n}"):
                assert name == "mark" or name.endswith("-" + ino), (n, ino, name)
                assert get(f"{b.workspace}/{n}/{name}").decode() == ino, name
        for n in "p", "q":
            ino = str(os.stat(f"{b.workspace}/{n}").st_ino).encode()
            assert get(f"{b.workspace}/{n}") in (ino, ino + b" " + ino)


mountbox.main(globals())
