# SPDX-License-Identifier: MIT
"""Git on this machine runs nothing that the sandbox chose, and ordinary work goes on as ever."""

import contextlib
import json
import os
import subprocess

import harness
from harness import check, equal

GIT = ("status", "log -1 -p", "diff HEAD", "checkout -q other", "checkout -q main", "fetch -q --all",
       "fetch -q origin", "sta", "branch -a", "submodule status")


def git(box, *args, cwd, status=None):
    """Whatever git says and however it ends: what it runs is what matters."""
    return box.world.run("git", *args, cwd=cwd, check_status=status, timeout=60,
                         env={"GIT_TERMINAL_PROMPT": "0"})


class Trap:
    """A repository in the sandbox and a program there that leaves a trace on this machine if it runs here."""

    def __init__(self, box, name):
        self.box = box
        self.repo = box.path(name)
        self.canary = box.world.dir("canary") + "/" + name
        box.sh(f"""
            set -e
            git init -q -b main {name}; cd {name}
            git config user.name s; git config user.email s@s
            echo one > a.txt; echo '*.x filter=f diff=d merge=m' > .gitattributes; echo data > b.x
            git add -A; git commit -qm one; git branch other
            git init -q --bare ../{name}-up.git; git push -q ../{name}-up.git main
            git remote add up http://127.0.0.1:9/up.git
            printf '#!/bin/sh\\ntouch {self.canary}\\n' > evil; chmod +x evil
        """)

    def sh(self, script):
        name = os.path.basename(self.repo)
        return self.box.sh(f"set -e; cd {name}; {script.replace('@', name)}")

    def work(self, cwd=None):
        """What people type; more of it than the promise names."""
        for command in GIT:
            git(self.box, *command.split(), cwd=cwd or self.repo)
        # A pager is for terminals. One of the repository's would win over this, which waits for no key.
        self.box.world.run("script", "-qec", "git log -1", "/dev/null", cwd=cwd or self.repo, check_status=None,
                           env={"PAGER": "cat"})

    def sprung(self):
        return os.path.exists(self.canary)


# name -> what the sandbox does in r; ./evil is the program.
CONFIGS = {
    "fsmonitor": "git config core.fsmonitor \"$PWD/evil\"; git config core.fsmonitor ./evil",
    "hooksPath": "mkdir h; cp evil h/post-checkout; cp evil h/post-index-change; git config core.hooksPath h",
    "sshCommand": "git remote set-url up ssh://localhost/x; git config core.sshCommand ./evil",
    "pager": "git config core.pager ./evil",
    "pager.log": "git config pager.log ./evil",
    "alias over a shell": "git config alias.sta '!./evil'",
    "filter.clean": "git config filter.f.clean ./evil; touch b.x",
    "filter.smudge": "git config filter.f.smudge ./evil; git checkout -q other; git rm -q --cached b.x; "
                     "git commit -qm gone; git checkout -qf main",
    "filter.process": "git config filter.f.process ./evil; git config filter.f.required true; touch b.x",
    "diff.textconv": "git config diff.d.textconv ./evil; echo more >> b.x",
    "diff.command": "git config diff.d.command ./evil; echo more >> b.x",
    "diff.external": "git config diff.external ./evil; echo more >> a.txt",
    "credential.helper": "git config credential.helper '!./evil'",
    "include": "printf '[core]\\nfsmonitor = ./evil\\n' > more; git config include.path ../more",
    "includeIf": "printf '[core]\\nfsmonitor = ./evil\\n' > more; "
                 "git config includeIf.gitdir:/.path ../more; git config 'includeIf.onbranch:**.path' ../more",
    "worktree config": "git config extensions.worktreeConfig true; "
                       "printf '[core]\\nfsmonitor = ./evil\\n' > .git/config.worktree",
    "uploadpack": "git config remote.up.uploadpack ./evil; git config remote.up.url \"$PWD/../@-up.git\"",
    "ext": "git config protocol.ext.allow always; git config remote.up.url 'ext::./evil %S'",
    "insteadOf": "git config protocol.allow always; git config 'url.ext::./evil .insteadOf' https://; "
                 "git config remote.up.url https://x",
    "gitProxy": "git config core.gitProxy ./evil; git config remote.up.url git://127.0.0.1:9/x",
    "gpg": "git config gpg.program ./evil; git config log.showSignature true; "
           "t=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n "
           "-----END PGP SIGNATURE-----'); printf '%s\\n' \"$t\" | git hash-object -w -t commit --stdin | "
           "xargs git update-ref refs/heads/main",
    "quoting": "printf '[user]\\nname = \"a\\\\\\n\"\\n[core] # \\\\\\nfsmonitor=\\\\\\n./evil\\n' >> .git/config",
    "alternateRefsCommand": "git config core.alternateRefsCommand ./evil; "
                            "git init -q --bare ../@-alt.git; echo $PWD/../@-alt.git/objects > .git/objects/info/alternates",
    "hooks": "for h in post-checkout post-index-change reference-transaction; do cp evil .git/hooks/$h; done",
    "hooks by a link": "rm -rf .git/hooks; mkdir h; cp evil h/post-checkout; cp evil h/post-index-change; "
                       "ln -s ../h .git/hooks",
    "a hook by a link": "for h in post-checkout post-index-change; do ln -s ../../evil .git/hooks/$h; done",
    "a hook by a second name": "for h in post-checkout post-index-change; do ln evil .git/hooks/$h; done",
    "config by a link": "printf '[core]\\nfsmonitor = ./evil\\n' >> .git/config; mv .git/config cfg; "
                        "ln -s ../cfg .git/config",
    "config by a second name": "git config core.fsmonitor ./evil; ln .git/config cfg",
    "info/attributes": "echo '*.txt filter=g' > .git/info/attributes; git config filter.g.clean ./evil; touch a.txt",
    "gitdir elsewhere": "git config core.fsmonitor ./evil; mv .git ../@-odd; echo 'gitdir: ../@-odd' > .git",
    "old remotes": "git remote remove up; git config protocol.ext.allow always; mkdir -p .git/remotes; "
                   "printf 'URL: ext::./evil\\nPull: main:x\\n' > .git/remotes/origin",
}
# Those that take a server which asks for a password, or objects to fetch: they are only tried with the guard.
ONLY_GUARDED = {"credential.helper", "alternateRefsCommand"}


@contextlib.contextmanager
def without_guard(box):
    box.world.rsb("umount", "--force", box.name)
    os.makedirs(box.mount, exist_ok=True)
    box.world.run("rsb-mount", "-o", "noguard", box.name, box.mount)
    yield
    box.world.rsb("umount", "--force", box.name)
    os.makedirs(box.mount, exist_ok=True)
    box.world.rsb("mount", box.name, box.mount)


def test_each_hostile_way(world):
    wanted = os.environ.get("RSB_TEST_CASES")
    with world.sandbox() as box:
        traps = {}
        for i, (name, script) in enumerate(CONFIGS.items()):
            if wanted and wanted not in name:
                continue
            trap = traps[name] = Trap(box, f"r{i}")
            # Git here has seen it while it was harmless: what it kept of that must not matter.
            git(box, "status", cwd=trap.repo, status=0)
            trap.sh(script)
            trap.work()
            check(not trap.sprung(), f"{name}: the sandbox's program ran here")
            held = [h for h in box.status().get("held", []) if h["path"].startswith(f"r{i}")]
            check(held, f"{name}: nothing is said to be held back")
            print(f"     {name}: {'; '.join(h['path'] + ' (' + h['why'] + ')' for h in held)}", flush=True)
        # And they are real: without the guard the same commands spring the traps.
        with without_guard(box):
            for trap in traps.values():
                trap.sh("touch a.txt b.x")
                trap.work()
            tame = {name for name, trap in traps.items() if not trap.sprung()}
            check(not tame - ONLY_GUARDED, f"harmless, so the test proves nothing: {tame - ONLY_GUARDED}")


def hook(path, canary):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\necho ran >> {canary}\n")
    os.chmod(path, 0o755)


def ran(canary):
    with contextlib.suppress(FileNotFoundError), open(canary, encoding="ascii") as f:
        return len(f.readlines())
    return 0


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
    with world.sandbox(source) as box:
        box.write("a.up", b"text\n")
        for args in (("add", "a.up"), ("commit", "-qm", "two")):
            git(box, *args, cwd=box.mount, status=0)
        equal(git(box, "cat-file", "blob", "HEAD:a.up", cwd=box.mount).stdout, b"TEXT\n")
        equal(ran(canary), 1)
        equal(box.status()["held_back"], 0)
        check("secret" not in box.sh("cat .git/config"), "credentials stay here")


def test_stat_and_contents_agree(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        trap.sh("git config core.sshCommand ./evil; cp evil .git/hooks/post-checkout; "
                "echo '* filter=x' > .git/info/attributes; git config user.name t")
        for name in ("config", "hooks/post-checkout", "info/attributes"):
            path = f"{trap.repo}/.git/{name}"
            for look in (lambda: os.stat(path).st_size, lambda: len(box.read(f"r/.git/{name}"))):
                equal(look(), len(box.read(f"r/.git/{name}")), name)
            with open(path, "rb") as f:
                equal(os.fstat(f.fileno()).st_size, len(f.read()), name)
        equal(os.stat(f"{trap.repo}/.git/hooks/post-checkout").st_mode & 0o111, 0, "a hook that may not run")
        check(b"sshCommand" not in box.read("r/.git/config") and b"name = t" in box.read("r/.git/config"),
              "the harmless is kept")
        # An open file keeps what it shows, whatever is done to it meanwhile.
        with open(f"{trap.repo}/.git/config", "rb") as f:
            before = f.read()
            trap.sh("git config core.askPass ./evil; git config user.email x")
            f.seek(0)
            equal(f.read(), before)
        check(b"email = x" in box.read("r/.git/config"))
        check("sshcommand" in box.sh("git -C r config -l"), "there it is what it is")


def test_trust(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        trap.sh("git config core.fsmonitor ./evil; cp evil .git/hooks/post-checkout; git config diff.external ./evil")
        trap.work()
        check(not trap.sprung())
        out = world.rsb("status", box.name).stdout.decode()
        check("r/.git/config (core.fsmonitor)" in out and "rsb trust" in out, out)
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
        world.rsb("trust", "/", check_status=125)
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


def test_a_repository_in_a_commit(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        # A tree of files that is a repository once git here has written them, on the user's behalf.
        trap.sh("git checkout -q other; mkdir -p bare/objects/x bare/refs/x bare/hooks; touch bare/objects/x/x bare/refs/x/x; "
                "echo 'ref: refs/heads/main' > bare/HEAD; cp evil bare/hooks/post-checkout; "
                "printf '[core]\nbare = false\nworktree = ..\nfsmonitor = %s\n' ../evil > bare/config; "
                "git add -f bare; git commit -qm bare; git checkout -q main")
        git(box, "checkout", "-q", "other", cwd=trap.repo, status=0)
        check(os.path.exists(f"{trap.repo}/bare/config"), "git here wrote it")
        trap.work(cwd=f"{trap.repo}/bare")
        check(not trap.sprung(), "what git here checked out ran")
        paths = {h["path"] for h in box.status()["held"]}
        check("r/bare/config" in paths, paths)


@contextlib.contextmanager
def held_open(*paths):
    """As a shell or an editor does that has them in use: their inodes live on whatever their names."""
    fds = [os.open(path, os.O_PATH) for path in paths]
    yield
    for fd in fds:
        os.close(fd)


# name -> (what git here writes for the sandbox, what the sandbox makes of it)
LAUNDRIES = {
    "a message becomes the configuration": (".git/COMMIT_EDITMSG", "ln -f .git/COMMIT_EDITMSG .git/config"),
    "a message is moved to the configuration": (".git/COMMIT_EDITMSG", "mv .git/COMMIT_EDITMSG .git/config"),
    "a file becomes the configuration": ("hooks/cfg", "mv hooks/cfg .git/config"),
    "a file becomes a hook": ("hooks/post-checkout", "mv hooks/post-checkout .git/hooks/"),
    "a directory becomes that of the hooks": ("hooks/post-checkout", "rm -rf .git/hooks; mv hooks .git/hooks"),
    "a directory is swapped with the repository": ("hooks/post-checkout", "mv .git x; mkdir .git; mv x/* .git; "
                                                   "rm -rf .git/hooks; mv hooks .git/"),
}


def test_what_git_here_wrote_for_the_sandbox_is_not_the_users(world):
    with world.sandbox() as box:
        ways = [(way, key) for way in LAUNDRIES for key in ("fsmonitor = ./evil", "hooksPath = hooks")]
        sprung = []
        for i, (way, key) in enumerate(ways):
            written, script = LAUNDRIES[way]
            trap = Trap(box, f"w{i}")
            # The sandbox proposes a commit, git here checks it out and makes another with its message.
            trap.sh(f"printf '[core]\n\t{key}\n' > msg; git checkout -q other; mkdir -p hooks; cp msg hooks/cfg; "
                    "cp evil hooks/post-checkout; cp evil hooks/post-index-change; git add -f hooks; "
                    "git commit -qF msg; git checkout -q main")
            git(box, "checkout", "-q", "other", cwd=trap.repo, status=0)
            git(box, "commit", "-q", "--allow-empty", "-F", "msg", cwd=trap.repo, status=0)
            with held_open(*(f"{trap.repo}/{name}" for name in (written, os.path.dirname(written)))):
                trap.sh(script)
                git(box, "checkout", "-q", "main", cwd=trap.repo)
                trap.work()
            if trap.sprung():
                sprung.append(f"{way}, {key}")
        equal(sprung, [], "the sandbox's program ran here")


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


def test_a_race_for_the_config(world):
    """The sandbox changes the file all the time: each read is of one judged text."""
    with world.sandbox() as box:
        trap = Trap(box, "r")
        p = subprocess.Popen(
            ["rsb-exec", "sh", "-c", "cd r; cp .git/config good; cp .git/config bad; "
             "printf '[core]\n\tfsmonitor = ./evil\n' >> bad; cp good g; cp bad b; echo go; "
             "while [ ! -e stop ]; do mv b .git/config; cp bad b; mv g .git/config; cp good g; "
             "cat bad > .git/config; cat good > .git/config; done"],
            cwd=box.mount, env=world.env, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"go\n")
        for _ in range(60):
            with contextlib.suppress(OSError), open(f"{trap.repo}/.git/config", "rb") as f:
                text = f.read()
                check(b"fsmonitor" not in text, text)
            git(box, "status", cwd=trap.repo)
        box.write("r/stop", b"")
        p.communicate(timeout=60)
        check(not trap.sprung(), "a race was won")


def test_links(world):
    outside = world.dir("outside")
    with open(f"{outside}/secret", "w", encoding="ascii") as f:
        f.write("secret")
    with world.sandbox() as box:
        up = "../" * len(box.mount.split("/"))
        workspace = box.sh("pwd").strip()
        box.sh(f"""
            mkdir -p a/b/c node_modules/.bin node_modules/m; echo in > a/t; echo bin > node_modules/m/cli.js
            ln -s ../m/cli.js node_modules/.bin/m; ln -s {workspace}/a/t a/b/abs; ln -s {workspace} a/b/root
            ln -s ../t a/b/up; ln -s ../../a/t a/b/up2; ln -s b/up a/chain; ln -s chain a/chain2
            ln -s {outside}/secret out; ln -s ../../..{outside}/secret a/b/deep; ln -s {up}{outside[1:]}/secret a/b/c/all
            ln -s a/b/../../../outside/secret dots; ln -s a/../../outside/secret dots2
            ln -s a/b/root/../../outside/secret through; ln -s /proc/self/root proc; ln -s /proc/self/cwd/a/t cwd
            ln -s ../outside/secret a/b/c/l; ln -s out chained; ln a/b/c/l hard
        """)
        for name, want in (("a/b/abs", "in\n"), ("a/b/up", "in\n"), ("a/b/up2", "in\n"), ("a/chain", "in\n"),
                           ("a/chain2", "in\n"), ("a/b/root/a/t", "in\n"), ("node_modules/.bin/m", "bin\n")):
            equal(box.read(name).decode(), want, name)
        equal(os.readlink(box.path("a/b/abs")), "../../a/t")
        for _ in range(3):
            for name in ("out", "a/b/deep", "a/b/c/all", "dots", "dots2", "through", "proc", "cwd", "chained", "hard"):
                check(not os.path.exists(box.path(name)), f"{name} leads out")
        with open(box.state("log"), encoding="utf-8") as f:
            lines = [line for line in f if "leads out" in line and f"'{outside}/secret'" in line]
        equal(len(lines), 1, "one line for one link")
        # A link that is swapped, and directories that move up, while somebody here follows them.
        os.mkdir(box.path("s"))
        p = subprocess.Popen(
            ["rsb-exec", "sh", "-c", f"mkdir -p s/x/y; ln -s ../../outside/secret s/x/y/l; echo go; "
             f"while [ ! -e stop ]; do ln -sf a/t n; mv -T n s/l; ln -sf {outside}/secret n; mv -T n s/l; "
             "mv -T s/x/y y; mv -T y s/x/y; done"],
            cwd=box.mount, env=world.env, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"go\n")
        for _ in range(400):
            for name in ("s/l", "s/x/y/l", "y/l"):
                with contextlib.suppress(OSError):
                    check(box.read(name) != b"secret", f"{name} was followed out")
        box.write("stop", b"")
        p.communicate(timeout=60)


harness.main(globals())
