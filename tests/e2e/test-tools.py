# SPDX-License-Identifier: MIT
"""Programs on a mount and on a local directory: locks, git, watchers, editors, node. Both must come to the same."""

import ctypes
import fcntl
import os
import select
import shutil
import struct
import subprocess

import harness
import programs
from alike import Seen, both, get, git, mode_of, put, save_by_rename, skips, source_tree
from harness import check, equal


def test_locks_hold_on_both_sides(world):
    with world.sandbox() as box:
        put(box.path("f"), b"")
        with open(box.path("f"), "r+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            equal(box.sh("flock -n f echo free || echo held"), "held\n")
            fcntl.flock(f, fcntl.LOCK_UN)
            equal(box.sh("flock -n f echo free || echo held"), "free\n")
            fcntl.lockf(f, fcntl.LOCK_EX)
            equal(world.run("python3", "-c", "import fcntl,sys\ntry: fcntl.lockf(open('f','r+b'),fcntl.LOCK_EX|fcntl.LOCK_NB)\n"
                            "except OSError: print('held')", cwd=box.mount).stdout, b"held\n")
        # A file that stands for a lock.
        put(box.path("index.lock"), b"", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        equal(box.sh("(set -C; : >index.lock) 2>/dev/null || echo held"), "held\n")
        os.unlink(box.path("index.lock"))
        equal(box.sh("(set -C; : >index.lock) && echo free"), "free\n")
        seen = Seen()
        seen("made by the sandbox", os.open, box.path("index.lock"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        equal(seen.list[0][1], "EEXIST")


def git_work(world, root):
    """Every step of some work, and what git said."""
    told = []

    def do(*args):
        r = world.run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args, cwd=root, check_status=None,
                      env={"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"})
        told.append((args, r.returncode, r.stdout.decode().replace(root, "ROOT"), r.stderr.decode().replace(root, "ROOT")))
    do("init", "-q", "-b", "main")
    source_tree(root, 60)
    do("add", "-A")
    do("commit", "-qm", "one")
    do("checkout", "-qb", "side")
    put(f"{root}/src/f000.c", b"changed\n")
    os.unlink(f"{root}/src/f002.c")
    os.rename(f"{root}/src/f004.c", f"{root}/src/moved.c")
    do("status", "--short")
    do("add", "-A")
    do("status", "--short")
    do("commit", "-qm", "two")
    put(f"{root}/.git/index.lock", b"")
    do("add", "-A")
    os.unlink(f"{root}/.git/index.lock")
    do("stash", "list")
    put(f"{root}/src/f006.c", b"stashed\n")
    do("stash")
    do("stash", "pop", "-q")
    do("checkout", "-q", "--", ".")
    do("checkout", "-q", "main")
    do("merge", "-q", "--no-edit", "side")
    do("write-tree")
    do("gc", "-q")
    do("fsck")
    do("worktree", "add", "-q", "wt", "HEAD~1")
    do("worktree", "remove", "wt")
    do("log", "--format=%H %s", "--stat")
    return told


def test_git_says_the_same(world):
    want = git_work(world, world.fresh("plain"))
    with world.sandbox() as box:
        for got, expected in zip(git_work(world, box.mount), want):
            equal(got, expected)
        equal(box.sh("git status --short; git log --format=%s"), "two\none\n")
        equal(git(world, box.mount, "status", "--short"), "")


IN_MODIFY, IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE, IN_DELETE = 2, 8, 0x80, 0x100, 0x200


def notified(root, change):
    """What a watch on a directory tells of a change made on this side."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    try:
        check(libc.inotify_add_watch(fd, os.fsencode(root), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE) >= 0, "inotify")
        change()
        told = []
        while select.select([fd], [], [], 0.2)[0]:
            data = os.read(fd, 65536)
            while data:
                _, mask, _, size = struct.unpack("iIII", data[:16])
                told.append((mask, data[16:16 + size].rstrip(b"\0").decode()))
                data = data[16 + size:]
        return told
    finally:
        os.close(fd)


def test_watchers_see_what_is_done_here(world):
    def action(root, seen):
        seen("a new file", notified, root, lambda: put(root + "/f", b"x"))
        seen("a save", notified, root, lambda: save_by_rename(root, "f", b"y"))
        seen("a removal", notified, root, lambda: os.unlink(root + "/f"))
    both(world, action)


WATCH = """
const fs = require('fs')
const root = process.argv[1]
const seen = new Set()
fs.watch(root, (event, name) => seen.add('event ' + name))
fs.watchFile(root + '/polled', { interval: 50 }, now => {
  if (!now.size) return
  seen.add('polled ' + now.size)
  console.log([...seen].sort().join(' '))
  process.exit(0)
})
console.log('ready')
setTimeout(() => fs.promises.writeFile(root + '/mine', 'x'), 50)
"""


@skips
def test_a_polling_watcher_sees_what_a_command_does(world):
    node = programs.find("node")
    with world.sandbox() as box:
        watcher = subprocess.Popen([node, "-e", WATCH, box.mount], stdout=subprocess.PIPE, env=world.env)
        try:
            equal(watcher.stdout.readline(), b"ready\n")
            harness.wait_until(lambda: os.path.exists(box.path("mine")), 20, "what the watcher wrote")
            box.sh("echo text >polled")
            equal(watcher.communicate(timeout=30)[0], b"event mine polled 5\n")
        finally:
            watcher.kill()
            watcher.wait()


def edited(world, root, vim):
    """Saves of real editors; what is left in the directory."""
    for setting in ("yes", "no", "auto"):
        put(f"{root}/{setting}", b"one\ntwo\n")
        os.chmod(f"{root}/{setting}", 0o640)
        if vim:
            world.run(vim, "-Nu", "NONE", "-es", "-c", f"set backupcopy={setting} writebackup fsync", "-c", "%s/two/three/", "-c", "wq",
                      setting, cwd=root)
    world.run("sed", "-i", "s/one/1/", "yes", cwd=root)
    world.run("sed", "-i.orig", "s/one/1/", "no", cwd=root)
    world.run("patch", "-s", "-b", "auto", input=b"--- auto\n+++ auto\n@@ -1 +1,2 @@\n one\n+more\n", cwd=root)
    return [(n, mode_of(f"{root}/{n}"), get(f"{root}/{n}")) for n in sorted(os.listdir(root))]


def test_editors(world):
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    if not vim:
        print("     without vim: not installed")
    want = edited(world, world.fresh("plain"), vim)
    with world.sandbox() as box:
        equal(edited(world, box.mount, vim), want)
        equal(box.sh("ls -A"), "".join(f"{n}\n" for n, _, _ in want))


NODE = """
const fs = require('fs'), path = require('path')
process.chdir(process.argv[1])
const told = []
const tell = (what, f) => { try { told.push([what, f()]) } catch (e) { told.push([what, e.code]) } }
fs.mkdirSync('a/b/c', { recursive: true })
fs.writeFileSync('a/b/c/f', 'text')
tell('copy', () => fs.copyFileSync('a/b/c/f', 'a/g'))
tell('copy again', () => fs.copyFileSync('a/b/c/f', 'a/g', fs.constants.COPYFILE_EXCL))
tell('cp', () => fs.cpSync('a', 'z', { recursive: true }))
tell('names', () => fs.readdirSync('z', { recursive: true }).sort())
tell('append', () => { fs.appendFileSync('z/g', ' more'); return fs.readFileSync('z/g', 'utf8') })
tell('realpath', () => path.relative(process.cwd(), fs.realpathSync.native('z/b/../g')))
tell('bigint', () => { const s = fs.statSync('z/g', { bigint: true }); return s.mtimeNs === fs.statSync('z/g', { bigint: true }).mtimeNs && typeof s.ino })
tell('mkdtemp', () => fs.mkdtempSync('t-').length)
tell('rm', () => fs.rmSync('z', { recursive: true }))
tell('gone', () => fs.statSync('z'))
tell('opendir', () => { const d = fs.opendirSync('a'); const e = []; let x; while ((x = d.readSync())) e.push([x.name, x.isFile()]); d.closeSync(); return e.sort() })
tell('statfs', () => fs.statfsSync('.').bsize > 0)
console.log(JSON.stringify(told))
"""


@skips
def test_node_says_the_same(world):
    node = programs.find("node")
    want = world.run(node, "-e", NODE, world.fresh("plain")).stdout
    with world.sandbox() as box:
        equal(world.run(node, "-e", NODE, box.mount).stdout, want)


harness.main(globals())
