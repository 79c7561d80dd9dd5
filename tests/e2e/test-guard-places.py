# SPDX-License-Identifier: MIT
"""A repository that the sandbox swaps for another between two looks of git is one all the same, by its path."""

import contextlib
import os
import subprocess

import harness
from gittrap import git, without_guard
from harness import check, equal

MAKE = """
    set -e; mkdir t; cd t
    git config --global user.name s; git config --global user.email s@s
    git init -q -b main up; cd up; echo f > f; git add f; git commit -qm one; cd ..
    git init -q -b main super; cd super
    git -c protocol.file.allow=always submodule --quiet add ../up sub; git commit -qm two
    git config extensions.worktreeConfig true; git worktree add -q ../w -b w; : > .git/worktrees/w/config.worktree; cd ..
    mkdir far; git clone -q up r; mv r/.git far/odd; echo 'gitdir: ../far/odd' > r/.git
    git clone -q --bare up far/bare
    for d in sub w r; do printf '#!/bin/sh\\ntouch CANARY\\n' > $d/evil 2>/dev/null || :; done
    printf '#!/bin/sh\\ntouch CANARY\\n' > super/sub/evil; chmod +x super/sub/evil w/evil r/evil
"""
EVIL = "printf '[core]\\n\\tfsmonitor = ./evil\\n' >> {0}; mkdir -p {1}/hooks; cp r/evil {1}/hooks/post-checkout"

# name -> (the directory that git takes for a repository's, its configuration)
PLACES = {
    "a submodule": ("super/.git/modules/sub", "config"),
    "a linked worktree": ("super/.git/worktrees/w", "config.worktree"),
    "what a .git file names": ("far/odd", "config"),
    "a bare repository": ("far/bare", "config"),
}


def make(box, canary):
    box.sh(MAKE.replace("CANARY", canary))


def look(path, names=("HEAD", "commondir", "objects", "refs")):
    """What git looks at before it believes in a repository."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            os.stat(f"{path}/{name}")


def swap(box, path, repo, config):
    """path and with it repo, which is it or below it, is another directory from now on, with an evil configuration."""
    below = os.path.relpath(f"{repo}/{config}", path)
    box.sh(f"cd t; rm -rf swapped old; cp -a {path} swapped; "
           + EVIL.format(f"swapped/{below}", "swapped/" + os.path.relpath(repo, path))
           + f"; mv {path} old; mv swapped {path}")


def ways():
    for name, (repo, config) in PLACES.items():
        path = repo
        while path:
            yield f"{name}, swapped at {path}", path, repo, config
            path = os.path.dirname(path)


def is_shown(box, repo, config):
    with open(box.path(f"t/{repo}/hooks/post-checkout"), "rb") as f:
        return b"fsmonitor" in box.read(f"t/{repo}/{config}") or f.read() != b""


def test_a_repository_is_swapped_between_two_looks(world):
    with world.sandbox() as box:
        shown = []
        for way, path, repo, config in ways():
            make(box, "/nowhere")
            look(box.path(f"t/{repo}"))
            swap(box, path, repo, config)
            if is_shown(box, repo, config):
                shown.append(way)
            box.sh("rm -rf t")
        equal(shown, [], "the sandbox's configuration or hook was given")
        with without_guard(box):
            make(box, "/nowhere")
            look(box.path("t/far/odd"))
            swap(box, "far/odd", "far/odd", "config")
            check(is_shown(box, "far/odd", "config"), "harmless, so the test proves nothing")


def test_a_repository_of_several_directories(world):
    """Each look is at another one, none of which is a repository."""
    with world.sandbox() as box:
        make(box, "/nowhere")
        look(box.path("t/far/odd"), ["objects"])
        swap(box, "far", "far/odd", "config")
        look(box.path("t/far/odd"), ["refs"])
        swap(box, "far/odd", "far/odd", "config")
        check(not is_shown(box, "far/odd", "config"), "the sandbox's configuration or hook was given")


def test_a_repository_that_was_renamed_here(world):
    with world.sandbox() as box:
        make(box, "/nowhere")
        look(box.path("t/super/.git/modules/sub"))
        os.rename(box.path("t/super"), box.path("t/moved"))
        # Whether the kernel asks again or not.
        swap(box, "moved/.git/modules/sub", "moved/.git/modules/sub", "config")
        check(not is_shown(box, "moved/.git/modules/sub", "config"), "the sandbox's configuration or hook was given")


def test_an_ordinary_directory_that_is_swapped(world):
    text = "[core]\n\tfsmonitor = ./evil\n"
    with world.sandbox() as box:
        make(box, "/nowhere")
        box.sh(f"mkdir -p t/a/src/refs t/a/src/hooks; printf '{text}' > t/a/src/config; echo x > t/a/src/hooks/post-checkout")
        for path in ("a/src", "a", "a/src"):
            look(box.path("t/a/src"))
            equal(box.read("t/a/src/config"), text.encode())
            equal(box.read("t/a/src/hooks/post-checkout"), b"x\n")
            box.sh(f"cd t; cp -a {path} other; mv {path} old; mv other {path}; rm -rf old")
        equal(box.read("t/a/src/config"), text.encode())
        # Nor is what lies beside a repository, or above it.
        look(box.path("t/far/odd"))
        box.sh(f"printf '{text}' | tee t/far/config t/config; mkdir t/far/other; cp t/config t/far/other")
        for name in ("t/config", "t/far/config", "t/far/other/config"):
            equal(box.read(name), text.encode(), name)


# name -> (what git takes for a repository's directory, below t; what leads to the repository; how it comes to lead to twin)
LEADS = {
    "a link called .git": ("r/.git", "rm r/.git; ln -s ../far/odd r/.git", "ln -sfn ../twin r/.git"),
    "a link called .git to a link": ("r/.git", "rm r/.git; ln -s far/odd l; ln -s ../l r/.git", "ln -sfn twin l"),
    "a .git file that names a link": ("far/l", "ln -s odd far/l; echo 'gitdir: ../far/l' > r/.git", "ln -sfn ../twin far/l"),
    "a .git file and a link on the way": ("l/odd", "ln -s far l; echo 'gitdir: ../l/odd' > r/.git",
                                          "mkdir o; mv twin o/odd; ln -sfn o l"),
    "a submodule's directory by a link": ("super/.git/modules/sub", "cd super/.git/modules; mv sub ../../../m; "
                                          "ln -s ../../../m sub", "ln -sfn ../../../twin super/.git/modules/sub"),
    "that of all submodules": ("super/.git/modules/sub", "cd super/.git; mv modules ..; ln -s ../modules modules",
                               "mkdir o; mv twin o/sub; ln -sfn ../../o super/.git/modules"),
    "commondir": ("c/r", "mkdir -p c/r; echo ref: refs/heads/main > c/r/HEAD; echo ../../far/odd > c/r/commondir; "
                  "echo 'gitdir: ../c/r' > r/.git", "echo ../../twin > c/r/commondir"),
}


def common_dir(box, path):
    """Where git takes the settings of the repository at path from."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        return path + "/" + box.read(f"t/{path}/commondir").decode().strip()
    return path


def read_through(box, path):
    """What git is given of the configuration and of a hook, by a path that it took for a repository's."""
    found = b""
    for name in ("config", "hooks/post-checkout"):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            found += box.read(f"t/{common_dir(box, path)}/{name}")
    return found


def test_what_leads_to_a_repository_is_redirected(world):
    with world.sandbox() as box:
        def attack(script, path, redirect):
            make(box, "/nowhere")
            box.sh(f"cd t; cp -a far/odd twin; {EVIL.format('twin/config', 'twin')}; {script}")
            with contextlib.suppress(PermissionError, IsADirectoryError):
                box.read("t/r/.git")
            with contextlib.suppress(PermissionError):
                look(box.path(f"t/{common_dir(box, path)}"))
            box.sh(f"cd t; {redirect}")
            found = read_through(box, path)
            box.sh("rm -rf t")
            return b"fsmonitor" in found or b"touch" in found

        given = [way for way, (path, script, redirect) in LEADS.items() if attack(script, path, redirect)]
        equal(given, [], "the sandbox's configuration or hook was given")
        with without_guard(box):
            tame = [way for way, (path, script, redirect) in LEADS.items() if not attack(script, path, redirect)]
            equal(tame, [], "harmless, so the test proves nothing")


def test_links_that_lead_to_repositories_work(world):
    with world.sandbox() as box:
        make(box, "/nowhere")
        box.sh("cd t; rm r/.git; ln -s ../far/odd r/.git; ln -s r l; ln -s super s; ln -s w v")
        for worktree in ("r", "l", "super", "s", "super/sub", "s/sub", "w", "v"):
            git(box, "status", cwd=box.path(f"t/{worktree}"), status=0)
        equal([h for h in box.status()["held"] if "link" in h["why"]], [], "a link is barred")
        # A path in a file is relative to the link that led to it, and nobody says which that was.
        box.sh("cd t; echo 'gitdir: far/odd' > f; ln -sfn ../f r/.git")
        equal(box.read("t/r/.git"), b"")
        equal([h["path"] for h in box.status()["held"] if "link" in h["why"]], ["t/f"])


SWAPPER = """
import ctypes, os, sys
rename = ctypes.CDLL(None, use_errno=True).renameat2
a, b = (os.fsencode(name) for name in sys.argv[1:])
print("go", flush=True)
while not os.path.exists("stop"):
    if rename(-100, a, -100, b, 2):
        raise OSError(ctypes.get_errno(), "renameat2")
"""


def race(box, path, repo, config, worktree, n):
    box.sh(f"cd t; rm -rf stop swapped; cp -a {path} swapped; "
           + EVIL.format("swapped/" + os.path.relpath(f"{repo}/{config}", path), "swapped/" + os.path.relpath(repo, path)))
    box.write("t/swap.py", SWAPPER.encode())
    with subprocess.Popen(["rsb-exec", "python3", "swap.py", path, "swapped"], cwd=box.path("t"), env=box.world.env,
                          stdout=subprocess.PIPE) as p:
        equal(p.stdout.readline(), b"go\n")
        good = sum(git(box, "status", cwd=box.path(f"t/{worktree}")).returncode == 0 for _ in range(n))
        box.write("t/stop", b"")
        equal(p.wait(60), 0)
    return good


def test_a_race_of_swaps(world):
    canary = world.dir("canary") + "/race"
    n = harness.how_many(4, 10, 20)
    with world.sandbox() as box:
        make(box, canary)
        for path, repo, config, worktree in (("super/.git/modules/sub", "super/.git/modules/sub", "config", "super/sub"),
                                             ("super/.git/worktrees/w", "super/.git/worktrees/w", "config.worktree", "w"),
                                             ("far/odd", "far/odd", "config", "r"), ("far", "far/odd", "config", "r")):
            good = race(box, path, repo, config, worktree, n)
            print(f"     {path}: git status ended well {good} times of {n}", flush=True)
            check(not os.path.exists(canary), f"{path}: a race was won")


harness.main(globals())
