# SPDX-License-Identifier: MIT
"""Ordinary work with git goes on as ever on both sides: what the user does here is his own, what the sandbox does stays there."""

import contextlib
import json
import os
import subprocess

import harness
from gittrap import Trap, git, hook, ran
from harness import check, equal


def test_ordinary_work_on_both_sides(world):
    origin = world.fresh("origin")
    world.run("sh", "-c", "git init -q -b main && echo one > a && git add a && git commit -qm one", cwd=origin)
    canary = world.dir("canary") + "/ordinary"
    with world.sandbox() as box:
        repo = box.path("c")

        def here(*args, **kw):
            return world.run("git", *args, cwd=kw.pop("cwd", repo), timeout=60, **kw).stdout.decode()

        def there(script):
            return box.sh(f"set -e; cd c; git config user.name s; git config user.email s@s; {script}")

        here("clone", "-q", "--no-hardlinks", origin, repo, cwd=box.mount)
        # A filter and a hook that the user sets up here run here.
        here("config", "filter.up.clean", "tr a-z A-Z")
        here("config", "filter.up.smudge", "tr A-Z a-z")
        with open(f"{repo}/.gitattributes", "w", encoding="ascii") as f:
            f.write("*.up filter=up\n")
        with open(f"{repo}/b.up", "w", encoding="ascii") as f:
            f.write("text\n")
        hook(f"{repo}/.git/hooks/pre-commit", canary)
        here("add", "-A")
        here("commit", "-q", "-m", "two")
        equal(ran(canary), 1, "the user's hook runs")
        equal(here("cat-file", "blob", "HEAD:b.up"), "TEXT\n", "the user's filter runs")
        equal(box.status()["held_back"], 0, "nothing is held back")
        # The sandbox works in it, with harmless settings, and that is seen here at once.
        there("chmod -x .git/hooks/pre-commit; echo two > d; git add d; git commit -qm three; chmod +x .git/hooks/*mmit; "
              "git branch --track new main; git remote add far https://example.org/x.git; git gc -q; "
              "git worktree add -q ../w -b w; git config branch.main.description text")
        equal(here("log", "--format=%s"), "three\ntwo\none\n")
        equal(here("config", "branch.new.merge"), "refs/heads/main\n")
        equal(here("remote"), "far\norigin\n")
        equal(here("config", "filter.up.clean"), "tr a-z A-Z\n", "the filter is still trusted")
        equal(here("status", "--porcelain"), "")
        equal(here("status", "--porcelain", "-b", cwd=box.path("w")), "## w\n", "the sandbox's worktree works here")
        here("worktree", "add", "-q", box.path("v"), "-b", "v")
        equal(here("status", "--porcelain", "-b", cwd=box.path("v")), "## v\n")
        here("remote", "add", "near", "https://example.org/y.git")
        here("gc", "-q")
        here("commit", "-q", "--allow-empty", "-m", "four")
        equal(ran(canary), 2)
        equal(there("git log --format=%s -n 1; git remote | sort").split(), ["four", "far", "near", "origin"])
        equal(box.status()["held_back"], 0)
        # Trust is remembered, and goes along with a rename.
        world.rsb("umount", "--force", box.name)
        os.makedirs(box.mount, exist_ok=True)
        world.rsb("mount", box.name, box.mount)
        os.rename(repo, box.path("moved"))
        repo = box.path("moved")
        here("commit", "-q", "--allow-empty", "-m", "five", cwd=repo)
        equal(ran(canary), 3, "after a remount and a rename")
        # What the sandbox makes of it does not run: the last copy of the user's own does.
        box.sh(f"printf '#!/bin/sh\\ntouch {canary}.evil\\n' > moved/.git/hooks/pre-commit; "
               "git -C moved config filter.up.clean ./evil; git -C moved config core.pager ./evil")
        equal(here("config", "filter.up.clean", cwd=repo), "tr a-z A-Z\n")
        here("commit", "-q", "--allow-empty", "-m", "six", cwd=repo)
        equal(ran(canary), 4)
        check(not os.path.exists(f"{canary}.evil"), "the sandbox's hook ran")
        equal({h["path"] for h in box.status()["held"]}, {"moved/.git/config", "moved/.git/hooks/pre-commit"})
        # A command there sees its own files as they are.
        equal(box.sh("git -C moved config filter.up.clean"), "./evil\n")


def test_a_repository_synced_in_is_the_users_own(world):
    source = world.fresh("own")
    canary = world.dir("canary") + "/own"
    world.run("sh", "-c", "git init -q -b main && git config filter.up.clean 'tr a-z A-Z' && git config "
              "http.extraHeader secret && echo '*.up filter=up' > .gitattributes && git add -A && git commit -qm one",
              cwd=source)
    hook(f"{source}/.git/hooks/post-commit", canary)
    library = world.fresh("library")
    world.run("sh", "-ec", f"git init -q -b main {library}; git -C {library} commit -q --allow-empty -m one; "
              f"for name in sub libs/deep; do git -c protocol.file.allow=always submodule --quiet add {library} $name; done; "
              "git commit -qm subs; git -C libs/deep config core.pager 'less -F'; "
              f"git -C {library} commit -q --allow-empty -m two; echo {library}/.git/objects > .git/objects/info/alternates",
              cwd=source)
    last = world.run("git", "rev-parse", "HEAD", cwd=library).stdout.decode().strip()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(canary)
    with world.sandbox(source) as box:
        for name in ("sub", "libs/deep"):
            equal(git(box, "config", "remote.origin.url", cwd=box.path(name)).stdout.decode(), library + "\n")
            equal(git(box, "config", f"submodule.{name}.url", cwd=box.mount).stdout.decode(), library + "\n")
        equal(git(box, "config", "core.pager", cwd=box.path("libs/deep")).stdout, b"less -F\n")
        equal(git(box, "show", "--format=%s", last, cwd=box.mount).stdout, b"two\n", "objects of another repository")
        box.write("a.up", b"text\n")
        for args in (("add", "a.up"), ("commit", "-qm", "two")):
            git(box, *args, cwd=box.mount, status=0)
        equal(git(box, "cat-file", "blob", "HEAD:a.up", cwd=box.mount).stdout, b"TEXT\n")
        equal(ran(canary), 1)
        equal(box.status()["held_back"], 0)
        check("secret" not in box.sh("cat .git/config"), "credentials stay here")


def test_trust(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        trap.sh("git config core.fsmonitor ./evil; cp evil .git/hooks/post-checkout; git config diff.external ./evil")

        def accepted(name):
            return json.loads(world.rsb("trust", "--json", box.path(name)).stdout)["accepted"]

        trap.work()
        check(not trap.sprung())
        out = world.rsb("status", box.name).stdout.decode()
        check("r/.git/config (core.fsmonitor, diff.external)" in out and "rsb trust" in out, out)
        # Only below the path that is named.
        out = world.rsb("trust", f"{trap.repo}/.git/hooks").stdout.decode()
        equal(out, "trusted: r/.git/hooks/post-checkout (a hook that was not made here)\n")
        equal(world.rsb("trust", f"{trap.repo}/.git/hooks", check_status=1).stdout, b"")
        git(box, "checkout", "-q", "other", cwd=trap.repo, status=0)
        check(trap.sprung(), "an accepted hook runs")
        os.unlink(trap.canary)
        trap.sh("echo '# more' >> .git/hooks/post-checkout")
        git(box, "checkout", "-q", "main", cwd=trap.repo, status=0)
        check(trap.sprung(), "its accepted copy does, when it is changed")
        os.unlink(trap.canary)
        # All of it, from inside; what is there now, not what was there first.
        trap.sh("git config diff.external ./evil2; rm .git/hooks/post-checkout")
        world.rsb("trust", cwd=box.mount)
        equal(box.status()["held_back"], 0)
        equal(git(box, "config", "diff.external", cwd=trap.repo).stdout, b"./evil2\n")
        git(box, "status", cwd=trap.repo)
        check(trap.sprung(), "an accepted fsmonitor runs")
        os.unlink(trap.canary)
        trap.sh("git config core.fsmonitor ./other")
        equal(git(box, "config", "core.fsmonitor", cwd=trap.repo).stdout, b"./evil\n")
        harness.sentence(world.rsb("trust", "/", check_status=125), "no .rsb/config")
        # Of what nobody here has looked at yet, and of what is not there.
        box.sh("cp -r r new; cp -r r more; git -C more -c protocol.file.allow=always submodule --quiet add "
               "$PWD/r libs/sub; git -C more/libs/sub config core.pager x; echo true > r/.git/hooks/pre-push")
        equal({h["path"] for h in accepted("new/.git/config")}, {"new/.git/config"})
        equal({h["path"] for h in accepted("more")}, {"more/.git/config", "more/.git/modules/libs/sub/config"})
        equal({h["path"] for h in accepted("r/.git/hooks")}, {"r/.git/hooks/pre-push"})
        r = world.rsb("trust", f"{trap.repo}/a.txt", check_status=1)
        harness.sentence(r, f"nothing is held back from git here of {trap.repo}/a.txt")
        harness.sentence(world.rsb("trust", f"{trap.repo}/.git/nothing", check_status=125), "No such file or directory")
        harness.sentence(world.rsb("trust", "/etc/passwd", check_status=125), "/etc/passwd is on no mount")
        equal(json.loads(world.rsb("trust", "--json", trap.repo).stdout),
              {"accepted": [{"path": "r/.git/config", "why": "core.fsmonitor"}]})
        # A bare one, which nothing but git's own look makes a repository.
        bare = box.path("r-up.git")
        for editor in ("x", "y"):
            box.sh(f"git -C r-up.git config core.editor ./{editor}")
            git(box, "status", cwd=bare)
        box.sh("git -C r-up.git config core.editor ./z")
        world.rsb("trust", bare)
        equal(git(box, "config", "core.editor", cwd=bare).stdout, b"./z\n")


def test_what_people_write_in_a_repository_is_theirs(world):
    """However their programs write it: at once, by another name, in a directory that is moved."""
    canary = world.dir("canary") + "/theirs"
    with world.sandbox() as box:
        def value(key, cwd):
            return git(box, "config", key, cwd=cwd).stdout

        for command in (None, ["rsb-exec", "sh", "-c", "echo go; read x"]):
            busy = command and subprocess.Popen(command, cwd=box.mount, env=world.env, stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE)
            if busy:
                equal(busy.stdout.readline(), b"go\n")
            repo = box.path("busy" if busy else "idle")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(canary)
            git(box, "init", "-q", "-b", "main", repo, cwd=box.mount, status=0)
            git(box, "config", "core.pager", "less -F", cwd=repo, status=0)
            world.run("sh", "-ec", "cd .git; printf '[core]\n\tsshCommand = x\n' > t; cat config >> t; mv t config", cwd=repo)
            equal(value("core.sshCommand", repo), b"x\n", "another name")
            world.run("sh", "-ec", "printf '[core]\n\teditor = y\n' >> .git/config", cwd=repo)
            equal(value("core.editor", repo), b"y\n", "appended")
            world.run("sed", "-i", "s/editor = y/editor = z/", f"{repo}/.git/config")
            equal(value("core.editor", repo), b"z\n", "sed")
            hook(f"{repo}/.git/hooks/t", canary)
            world.run("sh", "-ec", "cd .git/hooks; cp t post-checkout; cp t x; mv x pre-commit; ln t post-commit; rm t", cwd=repo)
            for args in (("config", "user.name", "u"), ("config", "user.email", "u@u"),
                         ("commit", "-q", "--allow-empty", "-m", "one"), ("checkout", "-q", "-b", "other")):
                git(box, *args, cwd=repo, status=0)
            equal(ran(canary), 3, "three hooks")
            os.unlink(canary)
            # A whole repository, moved to where it is to be; and others that git makes inside.
            os.rename(f"{repo}/.git", f"{repo}/new")
            os.rename(f"{repo}/new", f"{repo}/.git")
            os.rename(repo, repo + "2")
            repo += "2"
            git(box, "checkout", "-q", "main", cwd=repo, status=0)
            equal(ran(canary), 1, "a hook, after renames")
            git(box, "config", "core.pager", "more", cwd=repo, status=0)
            equal(value("core.pager", repo), b"more\n")
            world.run("git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{repo}/.git", "sub",
                      cwd=repo)
            git(box, "config", "core.pager", "sub", cwd=f"{repo}/sub", status=0)
            equal(value("core.pager", f"{repo}/sub"), b"sub\n")
            git(box, "worktree", "add", "-q", f"{repo}-w", cwd=repo, status=0)
            git(box, "clone", "-q", repo, f"{repo}-c", cwd=box.mount, status=0)
            git(box, "config", "core.pager", "c", cwd=f"{repo}-c", status=0)
            equal(value("core.pager", f"{repo}-c"), b"c\n")
            equal(box.status()["held_back"], 0)
            if busy:
                busy.communicate(b"\n", timeout=60)


def settings(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def test_what_is_held_back_stays_in_the_sandbox(world):
    with world.sandbox() as box:
        for command in (None, ["rsb-exec", "sh", "-c", "echo go; read x"]):
            busy = command and subprocess.Popen(command, cwd=box.mount, env=world.env, stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE)
            if busy:
                equal(busy.stdout.readline(), b"go\n")
            name = "busy" if busy else "idle"
            trap = Trap(box, name)
            config = f"{name}/.git/config"
            trap.sh("git config core.fsmonitor ./evil; git config submodule.lib.url /elsewhere")

            def here(*args, status=0, repo=trap.repo):
                return git(box, *args, cwd=repo, status=status).stdout.decode()

            def there(*args, name=name):
                return box.sh(f"git -C {name} config " + " ".join(args)).strip()

            # A submodule's repository is one like others.
            trap.sh("git -c protocol.file.allow=always submodule --quiet add $PWD sub; "
                    "git -C sub config core.fsmonitor ./evil")
            here("config", "a.b", "d", repo=f"{trap.repo}/sub")
            equal((there("a.b", name=f"{name}/sub"), there("core.fsmonitor", name=f"{name}/sub")), ("d", "./evil"))
            here("config", "core.fsmonitor", status=1, repo=f"{trap.repo}/sub")
            here("config", "a.b", "c")
            for _ in range(2):
                equal((there("a.b"), there("core.fsmonitor"), there("submodule.lib.url")), ("c", "./evil", "/elsewhere"))
                equal((here("config", "a.b"), here("config", "core.fsmonitor", status=1)), ("c\n", ""))
                # Read, listed and written once more it is what it was: nothing piles up.
                before = settings(box.sh(f"cat {config}"))
                here("config", "user.name", "n")
                here("config", "--unset", "user.name")
                here("config", "user.name", "s")
                equal(sorted(settings(box.sh(f"cat {config}"))), sorted(before))
            view = box.read(config)
            equal(os.stat(box.path(config)).st_size, len(view))
            check(b"evil" not in view and b"elsewhere" not in view, view)
            here("config", "--unset", "a.b")
            here("config", "--remove-section", "remote.up")
            here("remote", "add", "far", "https://example.org/x")
            equal((there("core.fsmonitor"), there("submodule.lib.url"), there("remote.far.url")),
                  ("./evil", "/elsewhere", "https://example.org/x"))
            equal(box.sh(f"git -C {name} remote; git -C {name} config a.b || echo none").split(), ["far", "none"])
            # The sandbox changes it; the user's own is kept apart from that.
            here("config", "core.editor", "mine")
            trap.sh("git config core.fsmonitor ./evil2; git config core.editor theirs; git config branch.x.merge refs/heads/x; "
                    "git config --unset submodule.lib.url")
            here("config", "a.c", "d")
            equal((there("core.fsmonitor"), there("core.editor"), there("branch.x.merge")),
                  ("./evil2", "theirs", "refs/heads/x"))
            equal((here("config", "core.editor"), here("config", "branch.x.merge")), ("mine\n", "refs/heads/x\n"))
            equal(box.sh(f"git -C {name} config submodule.lib.url || echo none").strip(), "none")
            # An editor that writes another file.
            world.run("sed", "-i", "s/mine/ours/", box.path(config))
            equal((here("config", "core.editor"), there("core.fsmonitor")), ("ours\n", "./evil2"))
            trap.work()
            check(not trap.sprung())
            check(config in [h["path"] for h in box.status()["held"]], box.status())
            if busy:
                busy.communicate(b"\n", timeout=60)


harness.main(globals())
