# SPDX-License-Identifier: MIT
"""A second harness on a mount, of another make: it saves in place, watches the tree and keeps snapshots of it by git.

As test-dsh.py; only where all is tested, since it is large.
"""

import json
import os
import sys

import harness
import model
import programs
from alike import git, skips, source_tree
from harness import check, equal

FILE = "WS/new/dir/a.txt"
CHANGED = "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings."
STEPS = [
    ("bash", {"command": "pwd; ls", "description": "A"}, "WS\nREADME\nsrc\n"),
    ("write", {"filePath": FILE, "content": "alpha\nbeta\n"}, "Wrote file successfully."),
    ("read", {"filePath": FILE},
     f"<path>{FILE}</path>\n<type>file</type>\n<content>\n1: alpha\n2: beta\n\n(End of file - total 2 lines)\n</content>"),
    ("edit", {"filePath": FILE, "oldString": "beta", "newString": "BETA"}, "Edit applied successfully."),
    ("bash", {"command": "cat new/dir/a.txt; sed -i s/BETA/gamma/ new/dir/a.txt", "description": "A"}, "alpha\nBETA\n"),
    ("edit", {"filePath": FILE, "oldString": "BETA", "newString": "delta"}, CHANGED),
    ("read", {"filePath": FILE},
     f"<path>{FILE}</path>\n<type>file</type>\n<content>\n1: alpha\n2: gamma\n\n(End of file - total 2 lines)\n</content>"),
    ("edit", {"filePath": FILE, "oldString": "gamma", "newString": "delta and more"}, "Edit applied successfully."),
    ("edit", {"filePath": FILE, "oldString": "delta and more", "newString": "d"}, "Edit applied successfully."),
    ("bash", {"command": "cat new/dir/a.txt; echo found >new/b.txt", "description": "A"}, "alpha\nd\n"),
    ("glob", {"pattern": "new/*.txt"}, "WS/new/b.txt"),
    ("grep", {"pattern": "^found"}, "Found 1 matches\nWS/new/b.txt:\n  Line 1: found\n"),
    ("grep", {"pattern": "return 117;"}, "Found 1 matches\nWS/src/deep/f117.c:\n  Line 3: \treturn 117;\n"),
    ("bash", {"command": "git add -A; git commit -qm two; git status --short; git log --format=%s", "description": "A"}, "two\none\n"),
    ("bash", {"command": "echo out; echo err >&2", "description": "A"}, "out\nerr\n"),
]


def workspace(world):
    root = world.fresh("workspace")
    source_tree(root)
    with open(f"{root}/README", "w", encoding="ascii") as f:
        f.write("text\n")
    git(world, root, "init", "-q", "-b", "main")
    for key, value in (("user.name", "t"), ("user.email", "t@example.org")):
        git(world, root, "config", key, value)
    git(world, root, "add", "-A")
    git(world, root, "commit", "-qm", "one")
    return root


def run(world, where, shell="/bin/bash"):
    program, rg = programs.find("opencode"), programs.find("rg")
    script = [(tool, {k: v.replace("WS", where) for k, v in arguments.items()}) for tool, arguments, _ in STEPS]
    with model.Model(script) as m:
        home = world.fresh("home")
        with open(f"{home}/opencode.json", "w", encoding="ascii") as f:
            json.dump({
                "provider": {"m": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": m.url, "apiKey": "none"},
                                   "models": {"m": {"name": "m"}}}},
                "model": "m/m", "small_model": "m/m", "permission": "allow", "autoupdate": False, "share": "disabled", "shell": shell}, f)
        # Nothing but the model can be reached.
        nowhere = "http://127.0.0.1:1"
        env = {"HOME": home, "PWD": where, "OPENCODE_CONFIG": f"{home}/opencode.json", "OPENCODE_DISABLE_AUTOUPDATE": "1",
               "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere,
               "NO_PROXY": "127.0.0.1", "PATH": f"{os.path.dirname(rg)}:{world.env['PATH']}"}
        env.update({name: f"{home}/{name}" for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")})
        out = world.run(program, "run", "do what is scripted", cwd=where, env=env, timeout=400)
    equal(out.stdout.strip(), b"done", "the last word")
    for n, (tool, arguments, want) in enumerate(STEPS):
        check(n in m.answers, f"step {n}, {tool} {arguments}, was not reached")
        equal(m.answers[n].replace(where, "WS"), want, f"step {n}, {tool} {arguments}")


@skips
def test_on_a_local_directory(world):
    run(world, workspace(world))


@skips
def test_on_a_mount(world):
    with world.sandbox(workspace(world)) as box:
        run(world, box.mount)
        equal(box.sh("git status --short; cat new/dir/a.txt new/b.txt"), "alpha\nd\nfound\n")


@skips
def test_on_a_mount_with_commands_in_the_sandbox(world):
    shell = world.fresh("path") + "/bash"
    with open(shell, "w", encoding="ascii") as f:
        f.write('#!/bin/sh\nprintf "%s\\n" "$*" >>"$0.log"\nexec rsb-exec -- bash "$@"\n')
    os.chmod(shell, 0o755)
    with world.sandbox(workspace(world), up=("-o", "sandbox.workspace=MOUNT")) as box:
        run(world, box.mount, shell)
    with open(shell + ".log", encoding="ascii") as f:
        check("git commit -qm two" in f.read(), "commands ran in the sandbox")


if not os.environ.get("RSB_TEST_FULL"):
    print("skipped: only with RSB_TEST_FULL")
    sys.exit(harness.SKIP)
harness.main(globals())
