# SPDX-License-Identifier: MIT
"""A repository in a sandbox that would run a program here, and hooks of the user's own that tell when they do."""

import contextlib
import os

GIT = ("status", "log -1 -p", "diff HEAD", "checkout -q other", "checkout -q main", "fetch -q --all",
       "fetch -q origin", "sta", "branch -a", "submodule status")


def git(box, *args, cwd, status=None):
    """Whatever git says and however it ends: what it runs is what matters."""
    return box.world.run("git", *args, cwd=cwd, check_status=status, timeout=60,
                         env={"GIT_TERMINAL_PROMPT": "0"})


@contextlib.contextmanager
def without_guard(box):
    box.world.rsb("umount", "--force", box.name)
    os.makedirs(box.mount, exist_ok=True)
    box.world.run("rsb-mount", "-o", "noguard", box.name, box.mount)
    yield
    box.world.rsb("umount", "--force", box.name)
    os.makedirs(box.mount, exist_ok=True)
    box.world.rsb("mount", box.name, box.mount)


class Trap:
    """A repository in the sandbox and a program there that leaves a trace on this machine if it runs here."""

    def __init__(self, box, name):
        self.box = box
        self.repo = box.path(name)
        self.canary = box.world.dir("canary") + "/" + name
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.canary)
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

    def work(self, cwd=None, until_sprung=False):
        """What people type; more of it than the promise names."""
        for command in GIT:
            git(self.box, *command.split(), cwd=cwd or self.repo)
            if until_sprung and self.sprung():
                return
        # A pager is for terminals. One of the repository's would win over this, which waits for no key.
        self.box.world.run("script", "-qec", "git log -1", "/dev/null", cwd=cwd or self.repo, check_status=None,
                           env={"PAGER": "cat"})

    def sprung(self):
        return os.path.exists(self.canary)


def hook(path, canary):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\necho ran >> {canary}\n")
    os.chmod(path, 0o755)


def ran(canary):
    with contextlib.suppress(FileNotFoundError), open(canary, encoding="ascii") as f:
        return len(f.readlines())
    return 0
