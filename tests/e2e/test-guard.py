# SPDX-License-Identifier: MIT
"""Git on this machine runs nothing that the sandbox chose."""

import contextlib
import os
import subprocess

import harness
from gittrap import Trap, git, without_guard
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
    "worktree in the repository": "git checkout -q other; cp evil post-checkout; git add post-checkout; git commit -qm hook; "
                                  "git checkout -q main; git config core.worktree hooks; cp a.txt b.x .gitattributes .git/hooks",
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
                trap.work(until_sprung=True)
            tame = {name for name, trap in traps.items() if not trap.sprung()}
            check(not tame - ONLY_GUARDED, f"harmless, so the test proves nothing: {tame - ONLY_GUARDED}")


def test_a_missing_object_is_asked_of_nobody(world):
    origin = world.fresh("origin")
    world.run("sh", "-ec", "git init -q -b main; git config uploadpack.allowFilter true; "
              "for i in one two; do echo $i > f; git add f; git commit -qm $i; done", cwd=origin)
    with world.sandbox() as box:
        trap = Trap(box, "r")

        def log(cwd):
            return world.run("git", "log", "-p", cwd=cwd, check_status=None, timeout=60,
                             env={"GIT_SSH_COMMAND": f"touch {trap.canary};"})

        trap.sh("git remote set-url up ssh://sandbox.invalid/x; git config core.repositoryFormatVersion 1; "
                "git config extensions.partialClone up; git config remote.up.promisor true; "
                "git config remote.up.partialCloneFilter blob:none; "
                "blob=$(git rev-parse HEAD:a.txt | sed 's,^..,&/,'); rm -f .git/objects/$blob")
        check(b"unable to read" in log(trap.repo).stderr)
        check(not trap.sprung(), "git here connects to where the sandbox says")
        equal([(h["path"], h["why"]) for h in box.status()["held"]],
              [("r/.git/config", "remote.up.promisor, remote.up.partialclonefilter, extensions.partialclone")])
        # What is cloned there lacks here what it lacks there; what is cloned here is asked for.
        box.sh("git init -q -b main o; cd o; git config uploadpack.allowFilter true; git config user.name s; git config user.email s@s; "
               "for i in one two; do echo $i > f; git add f; git commit -qm $i; done; "
               "git clone -q --filter=blob:none file://$PWD ../there")
        equal(git(box, "status", "--porcelain", cwd=box.path("there"), status=0).stdout, b"")
        check(b"unable to read" in log(box.path("there")).stderr)
        check(any(h["path"] == "there/.git/config" and "remote.origin.promisor" in h["why"] for h in box.status()["held"]))
        box.sh("git -C there log -p")
        equal(log(box.path("there")).returncode, 0, "it was asked for there")
        n_held = box.status()["held_back"]
        git(box, "clone", "-q", "--filter=blob:none", f"file://{origin}", box.path("here"), cwd=box.mount, status=0)
        check(b"+one" in log(box.path("here")).stdout)
        equal(box.status()["held_back"], n_held)
        check(not trap.sprung())
        with without_guard(box):
            log(trap.repo)
            check(trap.sprung(), "harmless, so the test proves nothing")


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


# name -> what the sandbox does; OUT is a repository of this machine's, UP leads from a directory of objects to its place.
ALTERNATES = {
    "absolute": "echo OUT/.git/objects > .git/objects/info/alternates",
    "relative": "echo UP/.git/objects > .git/objects/info/alternates",
    "quoted": "echo '\"OUT/.git/objects\"' > .git/objects/info/alternates",
    "in octal": "printf '%s\\n' '\"\\057/OUT/.git/objects\"' > .git/objects/info/alternates",
    "behind a quote": "printf '%s\\n' '\"x\"xOUT/.git/objects' > .git/objects/info/alternates",
    "over two files": "mkdir -p s/info; printf '#\\n../../s\\n' > .git/objects/info/alternates; "
                      "echo OUT/.git/objects > s/info/alternates",
    "over two files and links": "mkdir -p s a/b/c/d/e/f/g/h/i/j/k/l/info; ln -s ../a/b/c/d/e/f/g/h/i/j/k/l/info s/info; "
                                "ln -s s t; echo ../../t > .git/objects/info/alternates; "
                                "echo UP/.git/objects | cut -c 4- > s/info/alternates",
    "by a link": "echo OUT/.git/objects > x; ln -s ../../../x .git/objects/info/alternates",
    "by a second name": "echo OUT/.git/objects > x; ln x .git/objects/info/alternates",
    "in another's place": "mv .git/objects o; ln -s ../o .git/objects; echo OUT/.git/objects > o/info/alternates",
    "bare": "mv .git bare; git -C bare config core.bare true; echo OUT/.git/objects > bare/objects/info/alternates",
}


def test_objects_outside(world):
    secret = world.fresh("secret")
    world.run("sh", "-c", "git init -q -b main && echo secret > s && git add s && git commit -qm one", cwd=secret)
    commit = world.run("git", "rev-parse", "HEAD", cwd=secret).stdout.decode().strip()
    with world.sandbox() as box:
        up = os.path.relpath(secret, box.path("a/.git/objects"))

        def reads(i):
            repo = box.path(f"a{i}")
            bare = f"{repo}/bare"
            return git(box, "show", f"{commit}:s", cwd=bare if os.path.exists(bare) else repo).stdout

        for i, script in enumerate(ALTERNATES.values()):
            box.sh(f"set -e; git init -q -b main a{i}; cd a{i}; " + script.replace("OUT", secret).replace("UP", up))
        for i, name in enumerate(ALTERNATES):
            equal(reads(i), b"", name)
            held = [h["path"] for h in box.status()["held"] if h["path"].startswith(f"a{i}/")]
            # Seen from where it lies it stays inside, and that is where it leads then.
            check(held or name == "over two files and links", f"{name}: nothing is said to be held back")
            print(f"     {name}: {held}", flush=True)
        with without_guard(box):
            tame = [name for i, name in enumerate(ALTERNATES) if reads(i) != b"secret\n"]
            # Those are led by links of which the mount lets nobody out, guard or not.
            equal(tame, [], "harmless, so the test proves nothing")
        equal(reads(0) + reads(1), b"")
        world.rsb("trust", box.path("a0"))
        equal(reads(1), b"")
        equal(reads(0), b"secret\n", "what is accepted is read")


def test_objects_inside(world):
    outside = world.fresh("outside")
    world.run("sh", "-c", "git init -q -b main && echo far > s && git add s && git commit -qm far", cwd=outside)
    with world.sandbox() as box:
        def held():
            return [h["path"] for h in box.status().get("held", []) if not h["path"].endswith("/config")]

        box.sh("set -e; git init -q -b main base; cd base; git config user.name s; git config user.email s@s; "
               "echo in > f; git add f; git commit -qm one; cd ..; git clone -q --shared base shared; "
               "git clone -q shared rel; rm -rf rel/.git/objects/??; echo ../../../base/.git/objects > rel/.git/objects/info/alternates")
        for name in ("shared", "rel"):
            for command in (("fsck", "--strict"), ("status",), ("log", "-p")):
                git(box, *command, cwd=box.path(name), status=0)
            equal(box.read(f"{name}/.git/objects/info/alternates").decode(), f"{box.path('base')}/.git/objects\n")
        # Here a directory of the mount is one inside as well, and what is outside is the user's own will.
        git(box, "clone", "-q", "--shared", box.path("base"), box.path("near"), cwd=box.mount, status=0)
        git(box, "clone", "-q", "--shared", outside, box.path("far"), cwd=box.mount, status=0)
        for name, want in (("near", b"one\n"), ("far", b"far\n")):
            equal(git(box, "log", "--format=%s", cwd=box.path(name), status=0).stdout, want)
        equal(held(), [])
        # Not where the sandbox puts it.
        box.sh("git init -q moved; mv far/.git/objects/info/alternates moved/.git/objects/info/")
        equal(box.read("moved/.git/objects/info/alternates"), b"")
        equal(held(), ["moved/.git/objects/info/alternates"])


def test_worktrees_outside(world):
    victim = world.fresh("victim")
    with world.sandbox() as box:
        up = os.path.relpath(victim, box.path("r"))
        ways = (f"echo {victim}/.git > .git/worktrees/w/gitdir", f"echo {up}/.git > .git/worktrees/w/gitdir",
                f"mv .git/worktrees x; ln -s ../x .git/worktrees; echo {victim}/.git > x/w/gitdir",
                f"mv .git/worktrees/w x; ln -s ../../x .git/worktrees/w; echo {victim}/.git > x/gitdir",
                f"echo {victim}/.git > x; ln -sf ../../../x .git/worktrees/w/gitdir")
        for i, way in enumerate(ways):
            Trap(box, f"r{i}").sh(f"git worktree add -q ../w{i} other; mv .git/worktrees/w{i} .git/worktrees/w; "
                                  f"echo \"gitdir: $PWD/.git/worktrees/w\" > ../w{i}/.git")
            repo = box.path(f"r{i}")
            listed = git(box, "worktree", "list", "--porcelain", cwd=repo).stdout.decode()
            check(f"worktree {box.path(f'w{i}')}\n" in listed, "the sandbox's worktree is here what it is there")
            box.sh(f"cd r{i}; {way}")
            for command in ("repair", "list"):
                git(box, "worktree", command, cwd=repo)
            check(not os.path.lexists(f"{victim}/.git"), f"{way}: git here wrote outside")
            held = [h["path"] for h in box.status().get("held", []) if h["path"].startswith(f"r{i}/")]
            # From where it lies this stays inside; git before 2.48 takes it from where it runs.
            check(held or up in way, f"{way}: nothing is said to be held back")
        git(box, "worktree", "prune", "--expire=3.months.ago", cwd=box.path("r0"), status=0)
        check(os.path.exists(box.path("r0/.git/worktrees/w")), "what is held back is not pruned as git gc does it")
        with without_guard(box):
            git(box, "worktree", "repair", cwd=box.path("r0"))
            check(os.path.lexists(f"{victim}/.git"), "harmless, so the test proves nothing")


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
