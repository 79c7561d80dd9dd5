# SPDX-License-Identifier: MIT
"""Git on this machine runs nothing that the sandbox chose."""

import contextlib
import os
import subprocess

import harness
from gittrap import Trap, git
from harness import check, equal

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
