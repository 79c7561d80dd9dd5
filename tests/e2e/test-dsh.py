# SPDX-License-Identifier: MIT
"""An unmodified agent harness, driven by a scripted model, works on a mount as on a local directory.

Each step names a tool, its arguments and what the harness must tell the model then; WS stands for the workspace. The script
runs on a directory, on a mount with the commands of this side, and on a mount with the commands of the sandbox.
"""

import os
import shutil

import harness
import model
import programs
from alike import skips, source_tree
from harness import check, equal

STEPS = []
TREE = "25aecf60dc006c4d0a0c0866d01419d0f76adc30\n"


def tree(root):
    source_tree(root)
    with open(f"{root}/old.txt", "w", encoding="ascii") as f:
        f.write("one\ntwo\n")
    with open(f"{root}/dos.txt", "w", encoding="ascii", newline="") as f:
        f.write("one\r\ntwo\r\n")
    # Above 10 MiB it is read as a stream.
    with open(f"{root}/long.log", "w", encoding="ascii") as f:
        f.writelines(f"line {i:094}\n" for i in range(110_000))
    os.symlink("old.txt", f"{root}/link")


def step(tool, want, /, **arguments):
    STEPS.append((tool, arguments, want))


def bash(command, want, **more):
    step("bash", want, command=command, description="A step", **more)


def shown(path, *lines):
    """What the tool read says of a file of these lines."""
    text = "".join(f"{line}\n" for line in lines)
    return f"<path>WS/{path}</path>\n<type>file</type>\n<content>\n{text}\n(End of file - total {len(lines)} lines)\n</content>"


def said(path, text):
    return f"<path>WS/{path}</path>\n<type>file</type>\n<content>\n{text}\n</content>"


def updated(path):
    return f"The file WS/{path} has been updated successfully."


def changed(path):
    return f'Error: cannot edit "WS/{path}": file changed since it was read \u2014 re-read the file, then retry'


def found(*hits):
    """In the order of names; the harness tells them in the order of its search."""
    return f"Found {len(hits)} match{'es' * (len(hits) > 1)}\n\n" + "\n\n".join(f"{p}\nLine {n}: {t}" for p, n, t in hits)


# A new file, and the guard against stale edits: inode, size and times must not move by themselves, and must when the file did.
bash("pwd; ls; git init -q -b main; git config user.name t; git config user.email t@example.org; "
     "git add -A; git commit -qm one; git status --short; git log --format=%s", "WS\ndos.txt\nlink\nlong.log\nold.txt\nsrc\none\n")
step("write", said("new/dir/a.txt", "Created file"), file_path="new/dir/a.txt", content="alpha\nbeta\n")
bash("cat new/dir/a.txt; stat -c '%a %h %s' new/dir/a.txt; ls -A new/dir", "alpha\nbeta\n600 1 11\na.txt\n")
step("read", shown("new/dir/a.txt", "1: alpha", "2: beta"), file_path="new/dir/a.txt")
bash("true; cat new/dir/a.txt >/dev/null", "(no output)")
step("edit", updated("new/dir/a.txt"), file_path="new/dir/a.txt", old_string="beta", new_string="BETA")
step("edit", updated("new/dir/a.txt"), file_path="new/dir/a.txt", old_string="alpha", new_string="ALPHA")
bash("cat new/dir/a.txt; sed -i s/BETA/gamma/ new/dir/a.txt", "ALPHA\nBETA\n")
step("edit", changed("new/dir/a.txt"), file_path="new/dir/a.txt", old_string="gamma", new_string="delta")
step("read", shown("new/dir/a.txt", "1: ALPHA", "2: gamma"), file_path="new/dir/a.txt")
step("edit", updated("new/dir/a.txt"), file_path="new/dir/a.txt", old_string="gamma", new_string="delta")
# Only the change time tells of a chmod, and only the content of a write of the same size within it.
step("read", shown("old.txt", "1: one", "2: two"), file_path="old.txt")
bash("chmod 751 old.txt", "(no output)")
step("edit", changed("old.txt"), file_path="old.txt", old_string="two", new_string="2")
step("read", shown("old.txt", "1: one", "2: two"), file_path="old.txt")
bash("touch -r old.txt stamp; printf 'one\\nTWO\\n' > old.txt; touch -r stamp old.txt; rm stamp", "(no output)")
step("edit", changed("old.txt"), file_path="old.txt", old_string="two", new_string="2")
step("read", shown("old.txt", "1: one", "2: TWO"), file_path="old.txt")
# Replaced: the mode stays; through a link the link stays.
step("write", said("old.txt", "Updated file"), file_path="old.txt", content="replaced\n")
bash("stat -c '%a %h' old.txt; cat old.txt", "751 1\nreplaced\n")
step("read", shown("link", "1: replaced"), file_path="link")
step("write", said("link", "Updated file"), file_path="link", content="through\n")
bash("readlink link; cat old.txt", "old.txt\nthrough\n")
step("read", shown("dos.txt", "1: one", "2: two"), file_path="dos.txt")
step("edit", updated("dos.txt"), file_path="dos.txt", old_string="two", new_string="2")
bash("od -An -c dos.txt", "   o   n   e  \\r  \\n   2  \\r  \\n\n")
step("str_replace_editor", "New file created successfully at: WS/made.txt", command="create", path="WS/made.txt", file_text="1\n2\n3\n")
step("str_replace_editor", "The file WS/made.txt has been edited successfully.", command="str_replace", path="WS/made.txt", old_str="2", new_str="two")
step("str_replace_editor", "The file WS/made.txt has been edited successfully.", command="insert", path="WS/made.txt", insert_line=1, new_str="1.5")
step("str_replace_editor", "Here's the content of WS/made.txt with line numbers (which has a total of 5 lines):\n"
     "     1  1\n     2  1.5\n     3  two\n     4  3\n     5  \n", command="view", path="WS/made.txt")
# A long file in part; what cannot be read or written.
step("read", said("long.log", f"100000: line {99999:094}\n100001: line {100000:094}\n\n"
                  "(Showing lines 100000-100001 of 110000. Use offset=100002 to continue.)"), file_path="long.log", offset=100_000, limit=2)
step("read", 'Error: cannot read "WS/absent.txt": not found', file_path="absent.txt")
step("read", 'Error: cannot read "WS/src": not a regular file', file_path="src")
step("write", 'Error: cannot write "WS/src": not a regular file', file_path="src", content="x")
# Searches on this side, of what was made on either; by time of change.
bash("mkdir out; for i in 1 2 3; do echo found $i > out/$i.txt; touch -d @170000000$i out/$i.txt; done", "(no output)")
step("glob", "src/f000.c\nsrc/f002.c\nsrc/f004.c\nsrc/f006.c\nsrc/f008.c", pattern="src/f00*.c")
step("glob", "out/1.txt\nout/2.txt\nout/3.txt", pattern="out/*")
step("grep", found(*((f"src/deep/f1{i}7.c", 3, f"\treturn 1{i}7;") for i in range(10))), pattern=r"return 1\d7;")
step("grep", found(("out/2.txt", 1, "found 2"), ("out/3.txt", 1, "found 3")), pattern="found [23]", glob="*.txt")
step("grep", found(("new/dir/a.txt", 2, "delta")), pattern="^delta")
# git, on what all of this made: the id of the tree is that of every name, mode and byte.
bash("git add -A; git commit -qm two; git status --short; git log --format=%s; git ls-tree HEAD | cut -c1-6 | sort | uniq -c",
     "two\none\n      3 040000\n      3 100644\n      1 100755\n      1 120000\n")
bash("git rev-parse HEAD^{tree}", TREE)
bash("rm -r out; git status --short; git checkout -q -- out; cat out/*",
     " D out/1.txt\n D out/2.txt\n D out/3.txt\nfound 1\nfound 2\nfound 3\n")
# How a command ends.
bash("exit 3", "(no output)\n[exit code: 3]")
bash("kill -SEGV $$", "(no output)\n[killed by signal: SIGSEGV]")
bash("echo out; echo err >&2", "out\n[stderr]\nerr\n")
bash("cat; echo end of input", "end of input\n")
bash("echo from the back > back.txt; cat back.txt", "started background job bash-1", run_in_background=True)
step("job_output", "from the back\n[status: completed, exit code: 0]", job_id="bash-1", wait=True)
step("read", shown("back.txt", "1: from the back"), file_path="back.txt")


def told(where, tool, text):
    """What a run at where told, so that runs can be compared."""
    # Its own confinement turns a signal into a status.
    text = text.replace(where, "WS").replace("[exit code: 139]", "[killed by signal: SIGSEGV]")
    if tool == "grep":
        head, *hits = text.split("\n\n")
        text = "\n\n".join([head] + sorted(hits))
    return text


def run(world, where, mode="danger-full-access", path=None):
    """Drives the harness through all steps in the directory where; its commands are looked for in path first."""
    node, dsh = programs.find("node"), programs.find("dsh")
    script = [(tool, {k: v.replace("WS", where) if isinstance(v, str) else v for k, v in arguments.items()})
              for tool, arguments, _ in STEPS]
    with model.Model(script) as m:
        env = {"DSH_HOME": world.fresh("dsh"), "DEEPSEEK_BASE_URL": m.url, "DEEPSEEK_API_KEY": "none",
               "DSH_PERMISSION_MODE": mode, "PATH": f"{path or world.bin}:{os.path.dirname(node)}:{world.env['PATH']}"}
        out = world.run(node, dsh, "--profile", "headless", "do what is scripted", cwd=where, env=env, timeout=300)
    equal(out.stdout, b"done\n", "the last word")
    for n, (tool, arguments, want) in enumerate(STEPS):
        check(n in m.answers, f"step {n}, {tool} {arguments}, was not reached")
        equal(told(where, tool, m.answers[n]), want, f"step {n}, {tool} {arguments}")


def workspace(world):
    folder = world.fresh("workspace")
    tree(folder)
    return folder


@skips
def test_on_a_local_directory(world):
    run(world, workspace(world))


@skips
def test_on_a_mount(world):
    with world.sandbox(workspace(world)) as box:
        run(world, box.mount)
        equal(box.sh("git status --short; git rev-parse HEAD^{tree}"), "?? back.txt\n" + TREE, "as the sandbox sees it")


@skips
def test_on_a_mount_with_commands_in_the_sandbox(world):
    path = world.fresh("path")
    with open(f"{path}/bash", "w", encoding="ascii") as f:
        f.write('#!/bin/sh\nprintf "%s\\n" "$*" >>"$0.log"\nexec rsb-exec -- bash "$@"\n')
    os.chmod(f"{path}/bash", 0o755)
    # Under the same path on both sides, so that what commands print means the same here.
    with world.sandbox(workspace(world), up=("-o", "sandbox.workspace=MOUNT")) as box:
        run(world, box.mount, path=path)
    with open(f"{path}/bash.log", encoding="ascii") as f:
        ran = f.read()
    for tool, arguments, _ in STEPS:
        check(tool != "bash" or arguments["command"] in ran, f"{arguments} did not run in the sandbox")


@skips
def test_on_a_mount_confined_to_the_workspace(world):
    # Its own confinement of commands.
    if not shutil.which("bwrap") or world.run("bwrap", "--ro-bind", "/", "/", "true", check_status=None).returncode:
        raise programs.Absent("no bubblewrap that works")
    with world.sandbox(workspace(world)) as box:
        run(world, box.mount, mode="workspace-write")


harness.main(globals())
