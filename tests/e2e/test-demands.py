# SPDX-License-Identifier: MIT
"""What agent harnesses, editors and search programs ask of a directory that they work in.

Most cases do the same on a local directory and on a mount, and both must tell the same.
"""

import errno
import mmap
import os
import shutil
import subprocess
import tempfile
import time

import harness
import programs
from alike import Seen, both, get, git, mode_of, put, save_by_rename, source_tree
from harness import check, equal


# ---- new files and saves ----

def create_by_link(root, seen, name, data):
    """Aside in a directory of its own, then linked: never over what is there."""
    target = os.path.join(root, name)
    aside = os.path.join(os.path.dirname(target), f".{os.path.basename(name)}.1.tmpdir")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.mkdir(aside, 0o700)
    os.chmod(aside, 0o700)
    temp = aside + "/t.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_TRUNC, 0o600)
    os.fchmod(fd, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    seen("link", os.link, temp, target)
    seen("links", lambda: os.lstat(temp).st_nlink)
    seen("one file", os.path.samefile, temp, target)
    seen("not empty", os.rmdir, aside)
    seen("names", os.listdir, aside)
    os.unlink(temp)
    seen("rmdir", os.rmdir, aside)
    seen("links then", lambda: os.lstat(target).st_nlink)
    seen("mode", mode_of, target)
    seen("content", get, target)


def test_a_new_file_by_link(world):
    def action(root, seen):
        create_by_link(root, seen, "a", b"first\n")
        create_by_link(root, seen, "new/dir/b", b"second\n")
        put(root + "/other", b"other\n")
        seen("over a name", os.link, root + "/other", root + "/a")
        seen("of a directory", os.link, root + "/new", root + "/c")
        seen("of nothing", os.link, root + "/absent", root + "/c")
    equal(both(world, action), "./a 600 1 6\nfirst\n./new/dir/b 600 1 7\nsecond\n./other 644 1 6\nother\n")


def test_a_file_of_many_names(world):
    """Whichever names go, the file is reached by the one that stays, with what was known of the others."""
    def action(root, seen):
        for stays in (0, 4, 9):
            names = [f"{root}/{stays}-{i}" for i in range(10)]
            put(names[0], b"text")
            for n in names[1:]:
                os.link(names[0], n)
            for n in names:
                os.stat(n)
            for n in reversed(names[:stays] + names[stays + 1:]):
                os.unlink(n)
            seen("content", get, names[stays])
            seen("chmod", os.chmod, names[stays], 0o600)
            seen("link", os.link, names[stays], f"{root}/{stays}-again")
            seen("links", lambda path=names[stays]: os.stat(path).st_nlink)
    both(world, action)


def save_in_place(root, name, data):
    put(os.path.join(root, name), data)


def save_and_cut(root, name, data):
    fd = os.open(os.path.join(root, name), os.O_WRONLY | os.O_CREAT, 0o666)
    os.write(fd, data)
    os.ftruncate(fd, len(data))
    os.close(fd)


def save_with_backup(root, name, data):
    path = os.path.join(root, name)
    mode = mode_of(path) if os.path.exists(path) else 0o666
    if os.path.exists(path):
        os.rename(path, path + "~")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    os.write(fd, data)
    os.fchmod(fd, mode)
    os.fsync(fd)
    os.close(fd)
    if os.path.exists(path + "~"):
        os.unlink(path + "~")


SAVES = (save_by_rename, save_in_place, save_and_cut, save_with_backup)


def test_every_manner_to_save(world):
    def action(root, seen):
        for save in SAVES:
            seen("new", save, root, save.__name__, b"a longer first text\n")
            seen("mode", mode_of, f"{root}/{save.__name__}")
            os.chmod(f"{root}/{save.__name__}", 0o750)
            with open(f"{root}/{save.__name__}", "rb") as reader:
                seen("again", save, root, save.__name__, b"short\n")
                seen("a reader's own", reader.read)
            seen("content", get, f"{root}/{save.__name__}")
            seen("mode then", mode_of, f"{root}/{save.__name__}")
        seen("names", lambda: sorted(os.listdir(root)))
    equal(both(world, action), "".join(f"./{n} 750 1 6\nshort\n" for n in sorted(s.__name__ for s in SAVES)))


def test_a_command_right_after_a_save(world):
    with world.sandbox() as box:
        for i in range(5):
            for save in SAVES:
                save(box.mount, "f", b"%d %s\n" % (i, save.__name__.encode()))
                equal(box.sh("cat f"), f"{i} {save.__name__}\n")


def test_an_error_of_close_is_told(world):
    """A disk that is full: what a program was not told of must be there."""
    with world.own_server("--disk", "64M"), world.sandbox() as box:
        told = 0
        for i in range(64):
            path = box.path(f"f{i}")
            try:
                put(path, os.urandom(2 << 20))
            except OSError as e:
                check(e.errno in (errno.ENOSPC, errno.EDQUOT), str(e))
                told += 1
            else:
                equal(box.sh(f"stat -c %s f{i}"), f"{2 << 20}\n", f"f{i}, written without an error")
            if told == 3:
                break
        equal(told, 3, "errors told")
        for name in os.listdir(box.mount):
            os.unlink(box.path(name))
        put(box.path("small"), b"there is room again\n")
        equal(box.sh("cat small"), "there is room again\n")


# ---- attributes ----

def version(path):
    """What a guard against stale edits compares."""
    st = os.stat(path)
    return (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)


def there(box, name):
    """The same of the sandbox, without the device."""
    ino, size, mtime, ctime = box.sh(f"stat -c '%i %s %.9Y %.9Z' {name}").split()
    return (int(ino), int(size), int(mtime.replace(".", "")), int(ctime.replace(".", "")))


def test_attributes_do_not_move_by_themselves(world):
    with world.sandbox() as box:
        f, g = box.path("f"), box.path("g")
        fd = os.open(f, os.O_RDWR | os.O_CREAT)
        changes = [
            ("create", lambda: None),
            ("write", lambda: os.write(fd, b"text")),
            ("append", lambda: put(f, b"more", os.O_WRONLY | os.O_APPEND)),
            ("chmod", lambda: os.chmod(f, 0o640)),
            ("truncate", lambda: os.truncate(f, 3)),
            ("utimens", lambda: os.utime(f, ns=(1, 1234567890123456789))),
            ("link", lambda: os.link(f, g)),
            ("unlink", lambda: os.unlink(g)),
            ("rename", lambda: (os.rename(f, g), os.rename(g, f))),
            ("setxattr", lambda: os.setxattr(f, "user.k", b"v")),
            ("fsync", lambda: os.fsync(fd)),
        ]
        for name, change in changes:
            change()
            first = version(f)
            equal(version(f), first, f"after {name}, at once")
            equal(there(box, "f"), first[1:], f"after {name}, in the sandbox")
            equal(version(f), first, f"after {name} and a command")
        with open(f, "rb") as reader:
            reader.read()
        time.sleep(1.5)
        equal(version(f), first, "after a read and a while")
        os.close(fd)
        equal(version(f), first, "after close")
        world.rsb("umount", box.name)
        world.rsb("mount", box.name, box.mount)
        equal(version(f)[1:], first[1:], "after another mount")


def test_every_change_of_the_sandbox_moves_the_attributes(world):
    with world.sandbox() as box:
        f = box.path("f")
        put(f, b"one\n")
        for what in ("chmod 600 f", "echo two >f", "touch -r f s; echo ten >f; touch -r s f", "cp -p f g; mv g f", "touch f",
                     "ln f h", "rm h"):
            before = version(f)
            box.sh(what)
            check(version(f) != before, f"{what}: nothing moved")
            equal(there(box, "f"), version(f)[1:], what)
        equal(get(f), b"ten\n")


def test_no_reader_gets_what_a_command_replaced(world):
    with world.sandbox() as box:
        put(box.path("f"), b"%06d" % 0)
        os.mkdir(box.path("d"))
        with open(box.path("f"), "r+b") as f, mmap.mmap(f.fileno(), 6) as mapped:
            for i in range(1, 8):
                equal(get(box.path("f")), b"%06d" % (i - 1))
                box.sh(f"printf %06d {i} | dd of=f conv=notrunc 2>/dev/null; touch d/{i}; rm -f d/{i - 1}")
                equal(bytes(mapped), b"%06d" % i, "a mapping")
                equal(os.pread(f.fileno(), 6, 0), b"%06d" % i, "a descriptor")
                equal(os.listdir(box.path("d")), [str(i)])
                check(not os.path.exists(box.path(f"d/{i - 1}")) and os.path.exists(box.path(f"d/{i}")), "names")


# ---- what costs nothing ----

class Watched:
    """A sandbox whose requests are counted."""

    def __init__(self, world, box):
        self.world, self.box = world, box

    def __enter__(self):
        server = self.world.local_server()
        self.world.rsb("umount", self.box.name)
        self.proxy = harness.DelayProxy(server["port"])
        self.world.rsb("mount", self.box.name, self.box.mount, env={"RSB_LOCAL_URL": f"http://127.0.0.1:{self.proxy.port}"})
        return self

    def __exit__(self, *_):
        self.world.rsb("umount", self.box.name)
        self.proxy.close()

    def costs(self, function, *args):
        self.proxy.record()
        function(*args)
        # What is sent without waiting is on its way.
        time.sleep(0.2)
        record = self.proxy.record()
        record.pop("forget", None)
        return {k: v for k, v in record.items() if v and k != "requests"}


INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md", ".git", ".jj", ".ignore", ".rgignore")


def look_around(root):
    for folder in ("", "src/", "src/deep/"):
        for name in INSTRUCTIONS:
            check(not os.path.lexists(f"{root}/{folder}{name}"), f"{folder}{name} is there")


def poll(root):
    for _ in range(15):
        check(not os.path.exists(f"{root}/.dsh") and not os.path.exists(f"{root}/.agents"), "they are there")
        time.sleep(0.1)


def test_absent_names_cost_nothing(world):
    source = world.fresh("src")
    source_tree(source)
    with world.sandbox(source) as box, Watched(world, box) as watched:
        look_around(box.mount)
        equal(watched.costs(look_around, box.mount), {}, "absent names, the second time")
        poll(box.mount)
        equal(watched.costs(poll, box.mount), {}, "two absent names, polled")
        # And yet they are seen as soon as a command made them.
        box.sh("mkdir .dsh; echo rules >AGENTS.md; echo more >src/deep/CLAUDE.md")
        check(os.path.isdir(box.path(".dsh")), ".dsh is there")
        equal(get(box.path("AGENTS.md")) + get(box.path("src/deep/CLAUDE.md")), b"rules\nmore\n")
        box.sh("rmdir .dsh; rm AGENTS.md src/deep/CLAUDE.md")
        look_around(box.mount)
        poll(box.mount)


# ---- searches ----

def searched(world, root, rg=None):
    """What search programs find below root."""
    argvs = [
        ["grep", "-rn", "return 1.7;", "."],
        ["find", ".", "-name", "f00*", "-type", "f", "-size", "-2"],
        ["git", "grep", "-n", "return 1.7;"],
        ["git", "ls-files"],
        ["git", "status", "--short"],
    ]
    if rg:
        argvs += [
            [rg, "--no-config", "--files", "--glob=**/f00*.c", "--sort=modified", "--no-ignore", "--hidden", "--glob=!**/.git"],
            [rg, "--no-config", "--json", "--regexp=return 1.7;", "--sort=path"],
            [rg, "--no-config", "-l", "--sort=path", "ignored", "."],
            [rg, "--no-config", "-c", "--mmap", "--sort=path", "int f", root],
        ]
    found = []
    for argv in argvs:
        out = world.run(*argv, cwd=root, check_status=None)
        lines = sorted(line for line in out.stdout.decode().replace(root, "ROOT").splitlines() if "elapsed" not in line)
        check(not out.stderr, f"{argv}: {out.stderr}")
        found.append((argv[0], out.returncode, lines))
    return found


def test_search_programs_find_the_same(world):
    source = world.fresh("src")
    source_tree(source)
    put(f"{source}/.gitignore", b"*.log\n")
    put(f"{source}/a.log", b"ignored\n")
    put(f"{source}/src/b.txt", b"not ignored\n")
    git(world, source, "init", "-q", "-b", "main")
    git(world, source, "add", "-A")
    git(world, source, "commit", "-qm", "one")
    try:
        rg = programs.find("rg")
    except programs.Absent as e:
        rg = None
        print(f"     without ripgrep: {e}")
    want = searched(world, source, rg)
    check(all(lines for name, _, lines in want[:4]), "something to find")
    with world.sandbox(source) as box, Watched(world, box) as watched:
        print("     cold:", watched.costs(lambda: equal(searched(world, box.mount, rg), want)))
        warm = watched.costs(lambda: equal(searched(world, box.mount, rg), want))
        print("     warm:", warm)
        # Nobody waits for open and release. git makes a file and looks at it.
        check("lookup" not in warm and "getattr" not in warm and warm.get("read", 0) < 10, f"what was known is asked for again: {warm}")
        # What is found is true after a command, too.
        box.sh("sed -i 's/return 117/return 11/' src/deep/f117.c; rm src/f000.c; echo 'return 1x7;' >src/new.c")
        put(f"{source}/src/new.c", b"return 1x7;\n")
        os.unlink(f"{source}/src/f000.c")
        put(f"{source}/src/deep/f117.c", get(f"{source}/src/deep/f117.c").replace(b"117;", b"11;"))
        equal(searched(world, box.mount)[:5], searched(world, source)[:5], "after a command")


def test_a_big_tree(world):
    source = world.fresh("big")
    for d in range(60):
        os.makedirs(f"{source}/d{d % 8}/e{d}")
        for i in range(50):
            put(f"{source}/d{d % 8}/e{d}/file-{i}", b"%d\n" % i)

    def walk(root):
        return [(os.path.relpath(folder, root), sorted(dirs), sorted((f, os.lstat(os.path.join(folder, f)).st_size) for f in files))
                for folder, dirs, files in sorted(os.walk(root))]
    with world.sandbox(source) as box:
        equal(walk(box.mount), walk(source))
        shutil.copytree(box.path("d3"), box.path("copy"), symlinks=True)
        equal(box.sh("diff -r d3 copy && find copy | wc -l"), f"{len(subprocess.check_output(['find', source + '/d3']).splitlines())}\n")
        shutil.rmtree(box.path("copy"))
        equal(box.sh("ls"), "".join(f"d{i}\n" for i in range(8)))


# ---- calls ----

def entry_types(root):
    with os.scandir(root) as entries:
        return sorted((e.name, e.is_file(follow_symlinks=False), e.is_dir(follow_symlinks=False), e.is_symlink()) for e in entries)


def real_path(path, root):
    """By a descriptor and /proc, as some harnesses do."""
    fd = os.open(path, os.O_PATH)
    try:
        return os.readlink(f"/proc/self/fd/{fd}").replace(root, "ROOT")
    finally:
        os.close(fd)


def test_calls_of_harnesses(world):
    def action(root, seen):
        put(root + "/f", b"text")
        os.makedirs(root + "/d/e")
        os.symlink("../f", root + "/d/l")
        seen("exclusive", os.open, root + "/f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        seen("not through a link", os.open, root + "/d/l", os.O_RDONLY | os.O_NOFOLLOW)
        seen("a directory to write", os.open, root + "/d", os.O_WRONLY)
        seen("a file as a directory", os.open, root + "/f", os.O_RDONLY | os.O_DIRECTORY)
        seen("below a file", os.stat, root + "/f/x")
        seen("not empty", os.rmdir, root + "/d")
        seen("not a directory", os.rmdir, root + "/f")
        seen("is a directory", os.unlink, root + "/d")
        seen("again", os.mkdir, root + "/d")
        seen("no link", os.readlink, root + "/f")
        seen("no link either", os.readlink, root + "/d")
        seen("link", os.readlink, root + "/d/l")
        seen("through", get, root + "/d/l")
        seen("real", real_path, root + "/d/l", root)
        seen("real directory", real_path, root + "/d/e/..", root)
        seen("types", entry_types, root)
        seen("types below", entry_types, root + "/d")
        seen("over a directory", os.rename, root + "/f", root + "/d")
        seen("into itself", os.rename, root + "/d", root + "/d/e/x")
        put(root + "/g", b"new")
        seen("over a file", os.rename, root + "/g", root + "/f")
        seen("it is the new one", get, root + "/f")
        seen("gone", os.stat, root + "/g")
        seen("no attribute", os.getxattr, root + "/f", "user.none")
        seen("no capability", os.getxattr, root + "/f", "security.capability")
        seen("access", os.access, root + "/f", os.X_OK)
        with open(root + "/f", "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            seen("mapped", bytes, m)
        seen("long name", put, root + "/" + "n" * 256, b"")
        seen("empty", get, root + "/d/none")
    both(world, action)


def test_modes(world):
    def action(root, seen):
        old = os.umask(0o027)
        try:
            put(root + "/made", b"#!/bin/sh\necho ran\n")
            os.mkdir(root + "/dir")
            seen("file", mode_of, root + "/made")
            seen("directory", mode_of, root + "/dir")
            seen("not executable", subprocess.run, [root + "/made"], check=False)
            os.chmod(root + "/made", 0o750)
            seen("executable", subprocess.check_output, [root + "/made"])
            for mode in (0o400, 0o4755, 0o2755, 0o1777, 0):
                seen("chmod", os.chmod, root + "/dir", mode)
                seen("is", mode_of, root + "/dir")
            os.chmod(root + "/dir", 0o700)
        finally:
            os.umask(old)
    both(world, action)


def test_temporary_files(world):
    def action(root, seen):
        with tempfile.TemporaryFile(dir=root) as f:
            f.write(b"without a name")
            f.seek(0)
            seen("without a name", f.read)
            seen("links", lambda: os.fstat(f.fileno()).st_nlink)
        with tempfile.NamedTemporaryFile(dir=root) as f:
            seen("private", mode_of, f.name)
            os.unlink(f.name)
            f.write(b"unlinked")
            f.flush()
            seen("unlinked", os.pread, f.fileno(), 8, 0)
            put(f.name, b"")
        with tempfile.TemporaryDirectory(dir=root) as d:
            seen("private directory", mode_of, d)
            put(d + "/x", b"x")
        seen("nothing is left", os.listdir, root)
    both(world, action)


def test_symbolic_links(world):
    def action(root, seen):
        os.makedirs(root + "/node_modules/tool/bin")
        os.makedirs(root + "/node_modules/.bin")
        put(root + "/node_modules/tool/bin/run", b"#!/bin/sh\necho \"$(dirname \"$(readlink -f \"$0\")\")\" | sed 's|.*/node_modules|node_modules|'\n")
        os.chmod(root + "/node_modules/tool/bin/run", 0o755)
        seen("made", os.symlink, "../tool/bin/run", root + "/node_modules/.bin/run")
        seen("run", subprocess.check_output, [root + "/node_modules/.bin/run"])
        seen("target", os.readlink, root + "/node_modules/.bin/run")
        seen("dangling", os.symlink, "none", root + "/dangling")
        seen("not there", get, root + "/dangling")
        seen("there", os.path.lexists, root + "/dangling")
        seen("write through", put, root + "/dangling", b"made")
        seen("made", get, root + "/none")
        os.symlink("loop", root + "/loop")
        seen("loop", get, root + "/loop")
        seen("replace", save_by_rename, root, "dangling", b"a file now")
        seen("it is a file", os.path.islink, root + "/dangling")
    both(world, action)
    # Of the sandbox's own making: those that leave it are not followed here.
    with world.sandbox() as box:
        box.sh("ln -s /etc/passwd out; ln -s ../../../../../../etc/passwd up; echo x >in; ln -s \"$PWD/in\" absolute")
        seen = Seen()
        for name in ("out", "up"):
            seen(name, get, box.path(name))
        equal(seen.list, [("out", "EACCES"), ("up", "EACCES")])
        equal(get(box.path("absolute")), b"x\n")


harness.main(globals())
