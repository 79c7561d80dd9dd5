# SPDX-License-Identifier: MIT
"""Real programs on the mount, each with its own result checked."""

import hashlib
import json
import mmap
import os
import shutil
import sqlite3
import subprocess
import tarfile

import harness
from harness import check, equal


def git(world, *args, cwd, **kw):
    return world.run("git", *args, cwd=cwd, **kw).stdout.decode()


def make_repository(world):
    repo = world.fresh("repo")
    git(world, "init", "-q", "-b", "main", cwd=repo)
    for d in range(10):
        os.makedirs(f"{repo}/d{d}/sub")
        for f in range(20):
            with open(f"{repo}/d{d}/sub/f{f}.txt", "w", encoding="ascii") as out:
                out.write(f"{d} {f}\n" * (f * 50))
    with open(f"{repo}/run.sh", "w", encoding="ascii") as out:
        out.write("#!/bin/sh\necho ran\n")
    os.chmod(f"{repo}/run.sh", 0o755)
    os.symlink("d0/sub/f1.txt", f"{repo}/link")
    git(world, "add", "-A", cwd=repo)
    git(world, "commit", "-q", "-m", "one", cwd=repo)
    return repo


def tree_of(root):
    """Names, types, modes and contents below root."""
    found = {}
    for folder, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    what = hashlib.sha256(f.read()).hexdigest()
            else:
                what = ""
            found[os.path.relpath(path, root)] = (st.st_mode, what)
    return found


def mtimes_of(root):
    """To the nanosecond; a directory's changes with each name below it."""
    return {os.path.relpath(path, root): os.lstat(path).st_mtime_ns
            for folder, dirs, files in os.walk(root)
            for path in (os.path.join(folder, n) for n in dirs + files)
            if os.path.islink(path) or not os.path.isdir(path)}


def test_git_on_the_mount(world):
    repo = make_repository(world)
    with world.sandbox() as box:
        clone = box.path("clone")
        git(world, "clone", "-q", "--no-hardlinks", repo, clone, cwd=box.mount, timeout=300)
        git(world, "fsck", "--strict", cwd=clone)
        equal(git(world, "status", "--porcelain", cwd=clone), "", "status after clone")
        equal(tree_of(f"{repo}/d3"), tree_of(f"{clone}/d3"), "the working tree")
        with open(f"{clone}/d1/sub/f2.txt", "a", encoding="ascii") as f:
            f.write("more\n")
        os.unlink(f"{clone}/d2/sub/f3.txt")
        equal(git(world, "status", "--porcelain", cwd=clone), " M d1/sub/f2.txt\n D d2/sub/f3.txt\n")
        git(world, "commit", "-q", "-a", "-m", "two", cwd=clone)
        git(world, "worktree", "add", "-q", "../second", "-b", "other", cwd=clone)
        equal(tree_of(f"{clone}/d1"), tree_of(f"{box.mount}/second/d1"), "the second working tree")
        git(world, "gc", "-q", cwd=clone, timeout=300)
        git(world, "fsck", "--strict", cwd=clone)
        # The sandbox's git sees the same, and what it does is seen here.
        equal(box.sh("cd clone && git status --porcelain && git log --oneline | wc -l").strip(), "2")
        box.sh("cd clone && git -c user.name=t -c user.email=t@e commit -q --allow-empty -m three")
        equal(git(world, "log", "--format=%s", "-n", "1", cwd=clone), "three\n")
        equal(git(world, "status", "--porcelain", cwd=clone), "")


def test_a_repository_synced_in_is_clean(world):
    repo = make_repository(world)
    with world.sandbox(repo) as box:
        equal(git(world, "status", "--porcelain", cwd=box.mount), "", "status here")
        equal(box.sh("git status --porcelain"), "", "status there")
        equal(box.sh("./run.sh"), "ran\n")
        equal(tree_of(f"{repo}/d5"), tree_of(box.path("d5")))


def test_make_with_200_files(world):
    with world.sandbox() as box:
        for i in range(200):
            box.write(f"f{i}.c", b"int f%d(int x)\n{\n\treturn x + %d;\n}\n" % (i, i))
        calls = b" + ".join(b"f%d(0)" % i for i in range(200))
        decls = b"\n".join(b"int f%d(int);" % i for i in range(200))
        box.write("main.c", b"#include <stdio.h>\n" + decls +
                  b"\nint main(void)\n{\n\tprintf(\"%d\\n\", " + calls + b");\n\treturn 0;\n}\n")
        box.write("Makefile", b"OBJS := main.o $(patsubst %.c,%.o,$(wildcard f*.c))\n"
                  b"prog: $(OBJS)\n\t$(CC) -o $@ $^\n")
        box.exec("make", "-s", "-j4", timeout=300)
        equal(box.sh("./prog"), f"{sum(range(200))}\n")
        equal(world.run("make", "-q", cwd=box.mount).returncode, 0, "make here finds it up to date")
        box.write("f7.c", b"int f7(int x)\n{\n\treturn x + 1007;\n}\n")
        equal(box.sh("make -s && ./prog"), f"{sum(range(200)) + 1000}\n", "an edit is built")


def test_make_here_on_the_mount(world):
    with world.sandbox() as box:
        for i in range(20):
            box.write(f"f{i}.c", b"int f%d(void) { return %d; }\n" % (i, i))
        box.write("Makefile", b"all: $(patsubst %.c,%.o,$(wildcard f*.c))\n")
        world.run("make", "-s", "-j4", cwd=box.mount, timeout=300)
        equal(len([n for n in os.listdir(box.mount) if n.endswith(".o")]), 20)
        world.run("make", "-q", cwd=box.mount)


def test_npm_install_from_local_tarballs(world):
    npm = shutil.which("npm")
    if not npm:
        print("     skipped: no npm")
        return
    packages = world.fresh("packages")
    for name, needs in (("leaf", {}), ("branch", {"leaf": "file:../leaf-1.0.0.tgz"})):
        folder = f"{packages}/{name}"
        os.makedirs(f"{folder}/lib/deep")
        with open(f"{folder}/package.json", "w", encoding="ascii") as f:
            json.dump({"name": name, "version": "1.0.0", "main": "lib/index.js",
                       "bin": {f"run-{name}": "lib/cli.js"}}, f)
        with open(f"{folder}/lib/index.js", "w", encoding="ascii") as f:
            f.write(f"module.exports = {name!r};\n")
        with open(f"{folder}/lib/cli.js", "w", encoding="ascii") as f:
            f.write(f"#!/usr/bin/env node\nconsole.log({name!r});\n")
        for i in range(100):
            with open(f"{folder}/lib/deep/f{i}.js", "w", encoding="ascii") as f:
                f.write(f"// {i}\n" * i)
        world.run(npm, "pack", "--silent", f"./{name}", cwd=packages)
        del needs
    with world.sandbox() as box:
        box.write("package.json", json.dumps({"name": "app", "version": "1.0.0"}).encode())
        world.run(npm, "install", "--offline", "--no-audit", "--no-fund", f"{packages}/leaf-1.0.0.tgz",
                  f"{packages}/branch-1.0.0.tgz", cwd=box.mount, timeout=300)
        equal(sorted(n for n in os.listdir(box.path("node_modules")) if n[0] != "."), ["branch", "leaf"])
        equal(os.readlink(box.path("node_modules/.bin/run-leaf")), "../leaf/lib/cli.js")
        equal(len(os.listdir(box.path("node_modules/leaf/lib/deep"))), 100)
        out = world.run("node", "-e", "console.log(require('leaf'), require('branch'))", cwd=box.mount)
        equal(out.stdout, b"leaf branch\n")
        equal(world.run(box.path("node_modules/.bin/run-branch")).stdout, b"branch\n")


def test_sqlite_with_500_transactions(world):
    with world.sandbox() as box:
        for journal in ("DELETE", "WAL"):
            db = sqlite3.connect(box.path(f"{journal}.db"), isolation_level=None)
            equal(db.execute(f"PRAGMA journal_mode={journal}").fetchone()[0], journal.lower())
            db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT)")
            for i in range(500):
                db.execute("BEGIN")
                db.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * (i % 300)))
                db.execute("COMMIT")
            equal(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            equal(db.execute("SELECT count(*), sum(length(s)) FROM t").fetchone(),
                  (500, sum(i % 300 for i in range(500))))
            db.close()


def test_tar_extracts_what_it_packed(world):
    source = make_repository(world)
    os.mkfifo(f"{source}/fifo")
    os.link(f"{source}/run.sh", f"{source}/hard")
    with open(f"{source}/sparse", "wb") as f:
        f.truncate(50_000_000)
        f.seek(10_000_000)
        f.write(b"middle")
    archive = f"{world.fresh('tar')}/a.tar"
    world.run("tar", "--format=posix", "-cSf", archive, "-C", source, ".")
    with world.sandbox() as box:
        world.run("tar", "-xSpf", archive, "-C", box.mount, timeout=300)
        want, got = tree_of(source), tree_of(box.mount)
        equal(got, want, "the tree")
        equal(os.stat(box.path("hard")).st_ino, os.stat(box.path("run.sh")).st_ino, "hard links")
        check(os.stat(box.path("sparse")).st_blocks * 512 < 20_000_000, "holes stay holes")
        equal(mtimes_of(box.mount), mtimes_of(source), "times of all but directories")
        with tarfile.open(archive) as t:
            equal(len(t.getmembers()), len(want) + 1)


def test_saves_of_editors_and_harnesses(world):
    with world.sandbox() as box:
        # vim: rename the old to a backup, write the new under the name, fsync, remove the backup.
        box.write("a.txt", b"old\n")
        os.chmod(box.path("a.txt"), 0o640)
        os.rename(box.path("a.txt"), box.path("a.txt~"))
        fd = os.open(box.path("a.txt"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        os.write(fd, b"new by vim\n")
        os.fsync(fd)
        os.close(fd)
        os.unlink(box.path("a.txt~"))
        equal(box.sh("cat a.txt; stat -c %a a.txt"), "new by vim\n640\n")
        # A temporary file that gets the name by link(2): never over an existing one.
        fd = os.open(box.path(".tmp-1"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, b"created\n")
        os.fsync(fd)
        os.close(fd)
        os.link(box.path(".tmp-1"), box.path("fresh"))
        os.unlink(box.path(".tmp-1"))
        equal(os.stat(box.path("fresh")).st_nlink, 1)
        try:
            os.link(box.path("a.txt"), box.path("fresh"))
            check(False, "link over an existing name")
        except FileExistsError:
            pass
        # A temporary file renamed over the target, while a reader has the old one open.
        with open(box.path("a.txt"), "rb") as old:
            box.write(".tmp-2", b"third\n")
            os.rename(box.path(".tmp-2"), box.path("a.txt"))
            equal(old.read(), b"new by vim\n", "the old file stays readable")
        equal(box.sh("cat a.txt fresh; ls -A"), "third\ncreated\na.txt\nfresh\n")


def test_mmap_of_an_index(world):
    with world.sandbox() as box:
        data = os.urandom(2_000_000)
        box.write("index", data)
        with open(box.path("index"), "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            equal(hashlib.sha256(m).digest(), hashlib.sha256(data).digest(), "a mapping reads")
            m[1_000_000:1_000_005] = b"HELLO"
            m.flush()
            equal(box.sh("dd if=index bs=1 skip=1000000 count=5 2>/dev/null"), "HELLO", "after msync")
            m[0:5] = b"DIRTY"
            # No flush: the barrier before the command has to bring it there.
            equal(box.sh("head -c 5 index"), "DIRTY", "a dirty page is seen by a command")


def test_many_names_and_bytes(world):
    with world.sandbox() as box:
        root = os.fsencode(box.mount)
        names = [bytes([b]) + b"x" for b in range(1, 256) if b != 0x2F]
        for n in names:
            with open(root + b"/" + n, "wb") as f:
                f.write(n)
        equal(sorted(os.listdir(root)), sorted(names))
        equal(int(box.sh("ls -A | tr -d '\\n' >/dev/null; find . -type f | tr -cd '\\0-\\377' | wc -c >/dev/null; "
                         "find . -type f -printf x | wc -c")), len(names))
        for n in names:
            os.unlink(root + b"/" + n)
        equal(os.listdir(root), [])


def test_programs_see_a_directory_of_10000(world):
    with world.sandbox() as box:
        box.sh("mkdir big; cd big; i=0; while [ $i -lt 10000 ]; do : >f$i; i=$((i+1)); done")
        equal(len(os.listdir(box.path("big"))), 10_000)
        world.run("find", ".", "-name", "f*7", "-delete", cwd=box.path("big"), timeout=300)
        equal(box.sh("ls big | wc -l").strip(), "9000")
        subprocess.run(["rm", "-r", box.path("big")], check=True, timeout=300)
        equal(box.sh("ls -A"), "")


def test_a_listing_is_never_older_than_a_change(world):
    with world.sandbox() as box:
        os.mkdir(box.path("d"))
        want = []
        for i in range(50):
            # Given up half-way, so that what the mount keeps of it is asked for again.
            with os.scandir(box.path("d")) as entries:
                next(entries, None)
            if i % 5 == 0:
                box.sh(f"touch d/f{i}")
            else:
                box.write(f"d/f{i}", b"")
            want.append(f"f{i}")
            equal(sorted(os.listdir(box.path("d"))), sorted(want))
            check(not os.path.exists(box.path(f"d/f{i + 1}")), "a file that is not there")
        os.mkdir(box.path("e"))
        box.sh("touch e/there")
        equal(os.listdir(box.path("e")), ["there"])


harness.main(globals())
