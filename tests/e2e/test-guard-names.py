# SPDX-License-Identifier: MIT
"""Names that git takes from a repository without a look at them lead nowhere; a repository that is sound works as ever."""

import contextlib
import os
import subprocess

import gitmake
import harness
from gittrap import git, hook, ran, without_guard
from harness import check, equal

THREADS = ("-c", "index.threads=4")


def make(box, name, *options):
    """A repository with one commit, and the id of its blob, which says "evil"."""
    box.sh(f"set -e; git init -q -b main {' '.join(options)} {name}; cd {name}; git config user.name s; "
           "git config user.email s@s; echo evil > f; git add f; git commit -qm one")
    return box.sh(f"git -C {name} rev-parse HEAD:f").strip()


def put(box, name, data):
    """The sandbox's work, past the mount."""
    box.exec("sh", "-c", f"cat > {name}.new; mv {name}.new {name}", input=data)


def held(box, name):
    return [(h["path"], h["why"]) for h in box.status().get("held", []) if h["path"].startswith(name + "/")]


def test_an_index_of_files_outside(world):
    victim = world.fresh("victim")
    with world.sandbox() as box:
        up = os.path.relpath(victim, box.path("r"))
        names = [f"{up}/v", "f"]

        def split(i, blob):
            shared = gitmake.index(names, blob)
            put(box, f"r{i}/.git/sharedindex.{shared[-20:].hex()}", shared)
            return gitmake.index([], blob, link=shared[-20:].hex())

        ways = {
            "version 2": lambda i, blob: gitmake.index(names, blob),
            "version 4": lambda i, blob: gitmake.index(names, blob, version=4),
            "split": split,
            "by a second name": lambda i, blob: gitmake.index(names, blob),
        }
        for i, (way, what) in enumerate(ways.items()):
            blob = make(box, f"r{i}")
            # Git here has seen it while it was harmless.
            git(box, "status", cwd=box.path(f"r{i}"), status=0)
            put(box, f"r{i}/.git/index", what(i, blob))
            if way == "by a second name":
                box.sh(f"cd r{i}; cp .git/index x; ln -f x .git/index")

        def attack(i):
            for command in (("restore", "."), ("checkout", "--", "."), ("checkout-index", "-a", "-f"), ("diff",),
                            ("reset", "--hard"), ("stash",), ("rm", "-rf", "--cached", ".")):
                git(box, *command, cwd=box.path(f"r{i}"))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{victim}/v")
                return True
            return False

        for i, way in enumerate(ways):
            said = git(box, "status", cwd=box.path(f"r{i}")).stderr
            check(b"Permission denied" in said, said)
            check(not attack(i), f"{way}: git here wrote outside")
            why = held(box, f"r{i}")
            check(why, f"{way}: nothing is said to be held back")
            print(f"     {way}: {why}", flush=True)
            # It is no setting of the user's, so there is nothing to accept.
            check(world.rsb("trust", box.path(f"r{i}"), check_status=None).returncode, "a hostile index is accepted")
            # The way out, here or there.
            os.unlink(box.path(f"r{i}/.git/index"))
            git(box, "reset", "-q", cwd=box.path(f"r{i}"), status=0)
        with without_guard(box):
            tame = []
            for i, (way, what) in enumerate(ways.items()):
                put(box, f"r{i}/.git/index", what(i, box.sh(f"git -C r{i} rev-parse HEAD:f").strip()))
                if not attack(i):
                    tame.append(way)
            equal(tame, [], "harmless, so the test proves nothing")


def test_an_index_of_hooks(world):
    canary = world.dir("canary") + "/index"
    with world.sandbox() as box:
        make(box, "r")
        box.sh(f"cd r; printf '#!/bin/sh\necho ran >> {canary}\n' > x; git hash-object -w x > blob")
        blob = box.read("r/blob").decode().strip()
        put(box, "r/.git/index", gitmake.index([".git/hooks/post-checkout", "f"], blob))
        for command in (("checkout-index", "-a", "-f"), ("checkout", "main"), ("status",)):
            git(box, *command, cwd=box.path("r"))
        check(not os.path.exists(box.path("r/.git/hooks/post-checkout")), "git here made a hook for the sandbox")
        equal(ran(canary), 0)


def test_an_index_with_two_readings(world):
    """By its table a second thread of git finds names that are in no row of entries."""
    victim = world.fresh("victim")
    with world.sandbox() as box:
        blob = make(box, "r")
        up = os.path.relpath(victim, box.path("r"))
        names = [f"f{i}" for i in range(8)]
        put(box, "r/.git/index", gitmake.index(names, blob, threads=[f"{up}/v{i}" for i in range(3)]))

        def listed():
            return git(box, *THREADS, "ls-files", cwd=box.path("r")).stdout.decode()

        equal(listed(), "")
        check(held(box, "r"))
        with without_guard(box):
            check(f"{up}/v2" in listed(), "harmless, so the test proves nothing")


def test_an_index_that_changes(world):
    """The sandbox changes it all the time: each read is of one judged text."""
    victim = world.fresh("victim")
    with world.sandbox() as box:
        blob = make(box, "r")
        names = [os.path.relpath(victim, box.path("r")) + "/v", "f"]
        put(box, "r/bad", gitmake.index(names, blob))
        p = subprocess.Popen(
            ["rsb-exec", "sh", "-c", "cd r; cp .git/index good; cp good g; cp bad b; echo go; "
             "while [ ! -e stop ]; do mv b .git/index; cp bad b; mv g .git/index; cp good g; "
             "cat bad > .git/index; cat good > .git/index; done"],
            cwd=box.mount, env=world.env, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"go\n")
        n = 0
        for _ in range(60):
            with contextlib.suppress(OSError), open(box.path("r/.git/index"), "rb") as f:
                check(b"../" not in f.read(), "a bad one was given")
                n += 1
            git(box, "checkout-index", "-a", "-f", cwd=box.path("r"))
        box.write("r/stop", b"")
        p.communicate(timeout=60)
        check(not os.path.exists(f"{victim}/v"), "a race was won")
        print(f"     {n} of 60 reads were of a good one", flush=True)


def test_packs_outside(world):
    secret = world.fresh("secret")
    world.run("sh", "-c", "git init -q -b main && echo secret > s && git add s && git commit -qm one && "
              "git repack -qad && git multi-pack-index write", cwd=secret)
    commit = world.run("git", "rev-parse", "HEAD", cwd=secret).stdout.decode().strip()
    objects = f"{secret}/.git/objects/pack"
    pack = next(name for name in os.listdir(objects) if name.endswith(".idx"))
    with open(f"{objects}/multi-pack-index", "rb") as f:
        text = f.read()
    with world.sandbox() as box:
        make(box, "r")
        there = "r/.git/objects/pack/multi-pack-index"
        put(box, there, gitmake.packs(text, os.path.relpath(f"{objects}/{pack}", box.path("r/.git/objects/pack"))))

        def reads():
            return git(box, "show", f"{commit}:s", cwd=box.path("r")).stdout

        equal(reads(), b"", "git here read a pack outside")
        equal(held(box, "r"), [(there, "packs outside the repository")])
        git(box, "log", "-p", cwd=box.path("r"), status=0)
        with without_guard(box):
            equal(reads(), b"secret\n", "harmless, so the test proves nothing")


def test_conflicts_that_did_not_arise_here(world):
    """git-rerere(1) reads and writes whatever MERGE_RR names, at the end of any commit."""
    secret = world.fresh("secret") + "/s"
    with open(secret, "w", encoding="ascii") as f:
        f.write("secret\n")
    with world.sandbox() as box:
        make(box, "r")
        name = "0123456789" * 4

        def leaks():
            box.sh(f"cd r/.git; rm -rf rr-cache; mkdir -p rr-cache/{name}; : > rr-cache/{name}/preimage; "
                   f"printf '{name}\t{secret}\\0' > MERGE_RR")
            git(box, "commit", "-q", "--allow-empty", "-m", "x", cwd=box.path("r"), status=0)
            return "secret" in box.sh(f"cat r/.git/rr-cache/{name}/postimage 2>&1 || :")

        check(not leaks(), "git here read a file outside")
        equal(held(box, "r"), [("r/.git/MERGE_RR", "conflicts to be recorded that did not arise here")])
        with without_guard(box):
            check(leaks(), "harmless, so the test proves nothing")
        # Those that arise here are recorded.
        box.sh("rm -rf r/.git/rr-cache r/.git/MERGE_RR; mkdir r/.git/rr-cache; cd r; git checkout -qb other; echo b > f; "
               "git commit -qam b; git checkout -q main; echo c > f; git commit -qam c")
        git(box, "merge", "other", cwd=box.path("r"), status=1)
        box.write("r/f", b"d\n")
        check(b"Recorded resolution" in git(box, "commit", "-qam", "d", cwd=box.path("r"), status=0).stderr)


def test_sound_ones_work(world):
    """Every form that git itself writes, on both sides."""
    canary = world.dir("canary") + "/names"
    forms = {
        "plain": "true",
        "version 4": "git update-index --index-version 4",
        "split": "git update-index --split-index",
        "split and version 4": "git update-index --index-version 4 --split-index",
        "untracked cache": "git update-index --untracked-cache; git status",
        "packs": "git repack -qd; echo x > g; git add g; git commit -qm two; git repack -qd; git multi-pack-index write",
        "sparse": "mkdir -p a/b c/d; touch a/b/x c/d/y; git add .; git commit -qm two; git sparse-checkout set --cone "
                  "--sparse-index a",
        "a worktree": "git worktree add -q ../w; touch ../w/x; git -C ../w add x",
        "threads": f"touch {' '.join('abcde')}; git add .; git commit -qm more; "
                   f"git {' '.join(THREADS)} update-index --force-write-index",
    }
    with world.sandbox() as box:
        for i, (form, script) in enumerate(forms.items()):
            repo = box.path(f"r{i}")
            make(box, f"r{i}")
            box.sh(f"set -e; cd r{i}; {script}")
            hook(f"{repo}/.git/hooks/post-commit", canary)
            with open(f"{repo}/new", "w", encoding="ascii") as f:
                f.write(form)
            git(box, "add", "new", cwd=repo, status=0)
            git(box, "commit", "-q", "-m", "here", cwd=repo, status=0)
            equal(box.sh(f"cd r{i}; echo more >> f; git commit -qam there; git log --format=%s | head -2").split(),
                  ["there", "here"], form)
            equal(git(box, "status", "--porcelain", cwd=repo, status=0).stdout, b"", form)
            git(box, "checkout", "-q", "HEAD~2", cwd=repo, status=0)
            equal(box.sh(f"git -C r{i} status --porcelain; git -C r{i} fsck --strict --no-dangling"), "", form)
        equal(git(box, "ls-files", cwd=box.path("w"), status=0).stdout, b"f\nx\n")
        equal(box.status().get("held_back"), 0, "something sound is held back")
        equal(ran(canary), len(forms))


def test_the_other_format(world):
    victim = world.fresh("victim")
    with world.sandbox() as box:
        blob = make(box, "r", "--object-format=sha256")
        git(box, "status", cwd=box.path("r"), status=0)
        box.write("r/new", b"x")
        git(box, "add", "new", cwd=box.path("r"), status=0)
        equal(box.sh("git -C r status --porcelain"), "A  new\n")
        equal(box.status()["held_back"], 0)
        put(box, "r/.git/index", gitmake.index([os.path.relpath(victim, box.path("r")) + "/v"], blob))
        git(box, "checkout-index", "-a", "-f", cwd=box.path("r"))
        check(not os.path.exists(f"{victim}/v"), "git here wrote outside")
        equal([why for _, why in held(box, "r")], ["an index of files outside the working tree"])
        box.sh("cd r; rm .git/index; git reset -q")
        make(box, "s")
        check(box.read("r/.git/index").startswith(b"DIRC"), "a sound one is given again")
        # Whoever was given one configuration may read the index of the other, also one that was looked at before.
        check(b"Permission denied" in git(box, "status", cwd=box.path("s")).stderr)
        equal([why for _, why in held(box, "s")], ["an index where objects have ids of two kinds"])
        with contextlib.suppress(PermissionError):
            box.read("r/.git/index")
            check(False, "an index that was found to be sound by the other format alone is given")


harness.main(globals())
