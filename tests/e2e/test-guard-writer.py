# SPDX-License-Identifier: MIT
"""What git here writes because it is in a commit is not the user's own, wherever the sandbox makes it land."""

import os
import shutil
import subprocess

import harness
from gittrap import Trap, git, hook, ran, without_guard
from harness import check, equal

HOOKS = ("post-checkout", "post-index-change", "reference-transaction")

# name -> what the sandbox does in r before git here checks out a commit of it, and while it does.
WAYS = {
    # The directory that git works in is a link to a part of the repository.
    "a working tree by a link": ("for h in {hooks}; do cp evil $h; done",
                                 "ln -s @/.git/hooks ../@-lnk; git config core.worktree ../../@-lnk", ":"),
    # git here has made the directory, knows it to be one, and has more to write into it.
    "a directory that is swapped": ("mkdir d; for i in $(seq 100 600); do echo > d/a$i; done; for h in {hooks}; do cp evil d/$h; done",
                                    ":", "until [ -e d/a100 ]; do :; done; mv d d.old; ln -s .git/hooks d"),
}


def barred(box, name):
    """Links that git here would have written by."""
    return {h["path"] for h in box.status().get("held", []) if h["why"] == "a symbolic link into a repository"
            and h["path"].startswith((f"{name}/", f"{name}-lnk"))}


def comes_to_it(world, box, way, name, guarded):
    """Whether it could be arranged that git here writes the hooks of a commit into the repository's own, or would have."""
    trap = Trap(box, name)
    commit, before, meanwhile = WAYS[way]
    trap.sh(f"git checkout -q other; {commit.format(hooks=' '.join(HOOKS))}; git add -f .; git commit -qm hooks; "
            f"git checkout -q main; {before}")
    with subprocess.Popen(["rsb-exec", "sh", "-c", f"echo go; {meanwhile}"], cwd=trap.repo, env=world.env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as busy:
        equal(busy.stdout.readline(), b"go\n")
        git(box, "checkout", "-qf", "other", cwd=trap.repo)
        equal(busy.wait(60), 0)
    landed = set(HOOKS) & set(box.sh(f"ls {name}/.git/hooks").split())
    if not guarded:
        return trap if landed == set(HOOKS) else None
    equal(landed, set(), f"{way}: git here wrote into the repository")
    return trap if barred(box, name) else None


def plant(world, box, way, name, guarded):
    tries = (comes_to_it(world, box, way, f"{name}-{i}", guarded) for i in range(20))
    trap = next((trap for trap in tries if trap), None)
    check(trap, f"{way}: it never came to that")
    trap.sh("git config --unset core.worktree || :; rm -rf d ../@-lnk")
    for command in ("checkout -qf main", "checkout -qf other", "status"):
        git(box, *command.split(), cwd=trap.repo)
    return trap


def test_git_here_plants_no_hooks(world):
    with world.sandbox() as box:
        for i, way in enumerate(WAYS):
            trap = plant(world, box, way, f"r{i}", guarded=True)
            check(not trap.sprung(), f"{way}: the sandbox's program ran here")
        with without_guard(box):
            for i, way in enumerate(WAYS):
                check(plant(world, box, way, f"n{i}", guarded=False).sprung(), f"{way}: it would run without the guard")


def test_only_git_is_not_led_into_a_repository(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        trap.sh("git branch side; ln -s .git/hooks l; ln -s r/.git ../d; mkdir ../w; ln -s ../r/.git ../w/.git; "
                "ln -s l/../description way; touch .git/hooks/x")
        equal(world.run("cat", "l/x", cwd=trap.repo).stdout, b"")
        equal(os.readlink(f"{trap.repo}/l"), ".git/hooks")
        for path in ("l/x", "way", "../d/description"):
            git(box, "hash-object", path, cwd=trap.repo, status=128)
        equal(barred(box, "r"), {"r/l"})
        check("d" in {h["path"] for h in box.status()["held"]}, box.status()["held"])
        # A link called .git is how a repository is named.
        equal(git(box, "rev-parse", "--abbrev-ref", "side", cwd=box.path("w"), status=0).stdout, b"side\n")


def test_what_people_put_into_a_repository_is_theirs(world):
    """Also what git wrote elsewhere first; what git copies from a template takes a word."""
    canary = world.dir("canary") + "/put"
    template = world.fresh("template") + "/hooks"
    os.makedirs(template)
    hook(f"{template}/post-commit", canary)
    with world.sandbox() as box:
        repo = box.path("r")
        world.run("git", "init", "-q", "-b", "main", f"--template={os.path.dirname(template)}", repo)
        os.makedirs(f"{repo}/hooks")
        hook(f"{repo}/hooks/pre-commit", canary)
        for args in (("config", "user.name", "u"), ("config", "user.email", "u@u"), ("add", "."), ("commit", "-qm", "one"),
                     ("rm", "-q", "hooks/pre-commit"), ("commit", "-qm", "two")):
            git(box, *args, cwd=repo, status=0)
        equal(ran(canary), 0, "of a template")
        equal([h["path"] for h in box.status()["held"]], ["r/.git/hooks/post-commit"])
        world.rsb("trust", repo)
        # Out of a commit, and then moved by the user.
        git(box, "checkout", "-q", "HEAD^", "--", "hooks", cwd=repo, status=0)
        world.run("mv", "hooks/pre-commit", ".git/hooks/", cwd=repo)
        git(box, "commit", "-q", "--allow-empty", "-m", "three", cwd=repo, status=0)
        equal(ran(canary), 2, "both hooks")
        equal(box.status()["held_back"], 0)


def test_a_program_that_lies_on_the_mount_writes(world):
    """Who asks is looked up while nobody answers for the mount."""
    with world.sandbox() as box:
        repo = box.path("r")
        world.run("git", "init", "-q", repo)
        os.mkdir(box.path("git-core"))
        for program in ("git-core/copy", "git-core/git-lfs", "git"):
            shutil.copy(shutil.which("cp"), box.path(program))
            box.sh("true")
            world.run(box.path(program), box.path(program), f"{repo}/.git/hooks/pre-commit", timeout=30)
            os.unlink(f"{repo}/.git/hooks/pre-commit")


harness.main(globals())
