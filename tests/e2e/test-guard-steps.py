# SPDX-License-Identifier: MIT
"""An operation of git that the sandbox left half done, and how it goes on here: without what it would run."""

import os

import harness
from gittrap import Trap, without_guard
from harness import check, equal

# f is of the sandbox's at each of four commits, so a commit of side is in conflict with main; "git merge-d/evil" is ./git-merge-d/evil.
MAKE = """
    mkdir git-merge-d; cp evil git-merge-d/evil
    for i in 1 2 3; do echo $i > f; echo $i > g$i; git add f g$i; git commit -qm s$i; done; git branch side
    git reset -q --hard HEAD~3; echo m > f; echo m > h; git add f h; git commit -qm m
"""
STOP = "GIT_SEQUENCE_EDITOR='printf \"break\\n{}\" >' git rebase -q -i HEAD"
PICK = "git cherry-pick side~3..side >/dev/null 2>&1 || :; git checkout -q --theirs f; git add f"
AM = "git format-patch -q -o @-p side~2..side; sed -i s/^-1/-x/ @-p/0001*; git am -q @-p/* >/dev/null 2>&1 || :"
ONE = ("cherry-pick", "--continue")
TWO = ("rebase", "--continue")

# name -> (what the sandbox does, what is typed here)
WAYS = {
    "the strategy of a cherry-pick": (f"{PICK}; printf '[options]\\n\\tstrategy = d/evil\\n' > .git/sequencer/opts", ONE),
    "a command of a rebase": (STOP.format("exec ./evil\\n"), TWO),
    "the strategy of a rebase": (STOP.format("pick side~1\\n") + "; echo d/evil > .git/rebase-merge/strategy", TWO),
    "an option of git am": (f"{AM}; echo \" '--build-fake-ancestor=CANARY'\" > .git/rebase-apply/apply-opt", ("am", "--skip")),
    "paths of a bisection": ("git bisect start -q; git bisect bad side >/dev/null; git bisect good side~3 >/dev/null; "
                             "echo '$(./evil)' > .git/BISECT_NAMES", ("bisect", "visualize", "--oneline")),
}
# Git 2.40 does without a shell.
BY_VERSION = {"paths of a bisection"}


def go_on(box, trap, command, status=None):
    return box.world.run("git", *command, cwd=trap.repo, check_status=status, timeout=60, env={"GIT_EDITOR": "true"})


def held(box, name):
    return [(h["path"], h["why"]) for h in box.status().get("held", []) if h["path"].startswith(name + "/")]


def test_each_hostile_way(world):
    with world.sandbox() as box:
        traps = {}
        for i, (way, (script, command)) in enumerate(WAYS.items()):
            trap = traps[way] = Trap(box, f"r{i}")
            trap.sh(MAKE + script.replace("CANARY", trap.canary))
            go_on(box, trap, command)
            check(not trap.sprung(), f"{way}: the sandbox's program ran here")
            why = held(box, f"r{i}")
            check(why and "not begun here" in why[0][1], f"{way}: {why}")
            print(f"     {way}: {why}", flush=True)
        with without_guard(box):
            for way, trap in traps.items():
                go_on(box, trap, WAYS[way][1])
            tame = {way for way, trap in traps.items() if not trap.sprung()}
            check(not tame - BY_VERSION, f"harmless, so the test proves nothing: {tame}")


def test_it_goes_on_there_or_is_accepted(world):
    with world.sandbox() as box:
        trap = Trap(box, "r")
        trap.sh(MAKE + STOP.format("exec echo ran >> ran\\n"))
        for command in (TWO, ("rebase", "--skip")):
            said = go_on(box, trap, command, status=1).stderr
            check(b"git-rebase-todo" in said and b"Permission denied" in said, said)
        check("exec echo ran" in trap.sh("cat .git/rebase-merge/git-rebase-todo"), "it is left as it was")
        out = world.rsb("trust", trap.repo).stdout.decode()
        check("r/.git/rebase-merge/git-rebase-todo (a rebase that was not begun here" in out, out)
        go_on(box, trap, TWO, status=0)
        equal(box.read("r/ran"), b"ran\n", "what is accepted runs")
        trap.sh(STOP.format("exec touch there\\n"))
        go_on(box, trap, TWO, status=1)
        check(not os.path.exists(f"{trap.repo}/there"))
        trap.sh("git rebase --continue >/dev/null 2>&1")
        check(os.path.exists(f"{trap.repo}/there"), "there it goes on")
        trap.sh(STOP.format("exec ./evil\\n"))
        go_on(box, trap, ("rebase", "--abort"), status=0)
        check(not trap.sprung())


def test_what_runs_nothing_goes_on(world):
    with world.sandbox() as box:
        def fresh(name, script=""):
            trap = Trap(box, name)
            trap.sh(MAKE + script)
            return trap

        def resolve(trap, command):
            box.world.run("git", "checkout", "-q", "--theirs", "f", cwd=trap.repo)
            box.world.run("git", "add", "f", cwd=trap.repo)
            go_on(box, trap, command, status=0)

        # Begun there.
        trap = fresh("a", PICK)
        go_on(box, trap, ONE, status=0)
        trap = fresh("b", "git cherry-pick --strategy=resolve --no-edit side~3..side >/dev/null 2>&1 || :")
        resolve(trap, ONE)
        trap = fresh("c", "git rebase -q side >/dev/null 2>&1 || :")
        resolve(trap, TWO)
        trap = fresh("d", "git rebase -q --apply side >/dev/null 2>&1 || :")
        resolve(trap, TWO)
        equal(box.status()["held_back"], 0)
        # Begun here, with all that is held back of others.
        trap = fresh("e")
        world.run("git", "rebase", "-q", "-x", "echo ran >> ../ran", "-s", "resolve", "-X", "theirs", "side", cwd=trap.repo,
                  check_status=1)
        resolve(trap, TWO)
        equal(box.read("ran"), b"ran\n")
        trap = fresh("g")
        world.run("git", "cherry-pick", "-X", "patience", "side~3..side", cwd=trap.repo, check_status=1)
        resolve(trap, ONE)
        trap = fresh("h")
        world.run("git", "rebase", "-q", "--apply", "--whitespace=fix", "side", cwd=trap.repo, check_status=1)
        resolve(trap, TWO)
        equal(box.status()["held_back"], 0, box.status().get("held"))


def test_one_that_is_synced_in_is_the_users_own(world):
    source = world.fresh("own")
    world.run("sh", "-ec", "git init -q -b main; git commit -q --allow-empty -m one; "
              "GIT_SEQUENCE_EDITOR='printf \"break\nexec touch ran\n\" >' git rebase -q -i HEAD", cwd=source)
    with world.sandbox(source) as box:
        world.run("git", "rebase", "--continue", cwd=box.mount)
        check(os.path.exists(box.path("ran")))
        equal(box.status()["held_back"], 0)
    source = world.fresh("bisected")
    world.run("sh", "-ec", "git init -q -b main; for i in 1 2 3 4; do echo $i > f; git add f; git commit -qm $i; done; "
              "git bisect start HEAD HEAD~3 -- f", cwd=source)
    with world.sandbox(source) as box:
        world.run("git", "bisect", "good", cwd=box.mount)
        equal(box.status()["held_back"], 0)


harness.main(globals())
