# SPDX-License-Identifier: MIT
"""sync.in_command and sync.out_command: programs of the user's that sync instead of rsb."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import harness
from harness import check, equal, sentence, wait_until

GIT_IN = 'git init -q "$RSB_MOUNT" && cd "$RSB_MOUNT" && git pull -q --ff-only "$RSB_DIR" HEAD'
GIT_OUT = 'git pull -q --ff-only "$RSB_MOUNT" HEAD || exit 1'
# Without a mount: git's own protocol over rsb-exec.
EXT_OUT = 'git -c protocol.ext.allow=always pull -q --ff-only "ext::rsb-exec -q -- git %s ." HEAD || exit 1'
RSYNC = "rsync -a --delete --exclude=.rsb -e 'rsb-exec -q --'"
RSYNC_IN = f'{RSYNC} "$RSB_DIR/" "env:$RSB_WORKSPACE/"'
RSYNC_OUT = f'{RSYNC} "env:$RSB_WORKSPACE/" "$RSB_DIR/"'


MAN = pathlib.Path(__file__).resolve().parents[2] / "man/rsb.conf.5"


def option(direction, command):
    return ("-o", f"sync.{direction}_command={command}")


def git(world, where, *args):
    return world.run("git", *args, cwd=where).stdout.decode().strip()


def commit(world, where, name, text):
    pathlib.Path(where, name).write_text(text, encoding="utf-8")
    git(world, where, "add", name)
    git(world, where, "commit", "-q", "-m", name)


def names(where):
    return sorted(n for n in os.listdir(where) if n not in (".git", ".rsb"))


@contextlib.contextmanager
def project(world, up=(), **files):
    source = pathlib.Path(world.fresh("src"))
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    with world.sandbox(str(source), up) as box:
        yield box, source


def sync(world, box, way, command, *args, **kw):
    return world.rsb("sync", way, *option(way, command), *args, box.name, **kw)


def test_git_through_the_mount_and_through_rsb_exec(world):
    source = world.fresh("src")
    git(world, source, "init", "-q")
    commit(world, source, "a", "1")
    pathlib.Path(source, "uncommitted").write_text("here", encoding="utf-8")
    with world.sandbox(source, option("in", GIT_IN)) as box:
        equal(names(box.mount), ["a"], "what is committed, and that alone")
        commit(world, box.mount, "b", "2")
        r = sync(world, box, "out", GIT_OUT)
        check(b"synced out by sync.out_command" in r.stdout, r.stdout)
        equal(names(source), ["a", "b", "uncommitted"])
        commit(world, source, "c", "3")
        sync(world, box, "in", GIT_IN)
        equal(names(box.mount), ["a", "b", "c"])
        commit(world, box.mount, "d", "4")
        sync(world, box, "out", EXT_OUT)
        equal(names(source), ["a", "b", "c", "d", "uncommitted"])
        # Commits on both sides: git says no, and so does rsb, by the status for conflicts.
        commit(world, source, "here", "5")
        commit(world, box.mount, "there", "6")
        r = sync(world, box, "out", GIT_OUT, check_status=1)
        check(b"conflicts remain" in r.stdout, r.stdout)
        git(world, source, "pull", "-q", "--no-rebase", "--no-edit", box.mount, "HEAD")
        sync(world, box, "out", GIT_OUT)


def test_rsync_over_rsb_exec(world):
    if not shutil.which("rsync"):
        print("skipped: there is no rsync")
        return
    with project(world, option("in", RSYNC_IN), a="1", b="2") as (box, source):
        equal(names(box.mount), ["a", "b"])
        box.sh("rm a; echo -n 3 > c")
        sync(world, box, "out", RSYNC_OUT)
        equal(names(source), ["b", "c"])
        # Nothing is mounted, nor does a daemon run.
        world.rsb("umount", box.name)
        (source / "b").unlink()
        sync(world, box, "in", RSYNC_IN)
        r = world.rsb("sync", "status", "--json", box.name)
        equal(json.loads(r.stdout)["comes"], [], "what a command brought is the same on both sides")


def test_the_examples_of_the_man_page_are_these(world):
    shown = [line.strip() for line in MAN.read_text(encoding="utf-8").split("\n") if "_command = " in line]
    for text in (f"in_command = {GIT_IN}", f"out_command = {GIT_OUT}", f"out_command = {EXT_OUT}", f"in_command = {RSYNC_IN}",
                 f"out_command = {RSYNC_OUT}"):
        check(text in shown, f"{text!r} is not in {shown}")
        config = pathlib.Path(world.fresh(), "config")
        config.write_text(f"[sync]\n\t{text}\n", encoding="utf-8")
        world.rsb("list", env={"RSB_CONFIG": str(config)})


def test_what_a_command_is_told(world):
    with project(world, a="1") as (box, source):
        seen = world.dir("seen")
        sync(world, box, "out", f"env > {seen}/env; pwd > {seen}/cwd; rsb-exec -q pwd > {seen}/there")
        told = dict(line.split("=", 1) for line in pathlib.Path(seen, "env").read_text(encoding="utf-8").split("\n") if "=" in line)
        state = json.loads(pathlib.Path(box.state("state.json")).read_text(encoding="utf-8"))
        want = {"RSB_SANDBOX": box.name, "RSB_DIR": str(source), "RSB_MOUNT": box.mount, "RSB_SYNC_DIRECTION": "out",
                "RSB_WORKSPACE": "/home/user/workspace"}
        equal({k: told.get(k) for k in want}, want)
        check(told["RSB_SANDBOX_ID"] in state.values(), told["RSB_SANDBOX_ID"])
        equal(pathlib.Path(seen, "cwd").read_text(encoding="utf-8").strip(), str(source))
        equal(pathlib.Path(seen, "there").read_text(encoding="utf-8").strip(), "/home/user/workspace")
        check(not os.path.exists(box.state("sync.token")), "its secret is gone")


def test_rsb_is_found_by_a_command(world):
    with project(world, a="1") as (box, _):
        rsb = os.path.realpath(f"{world.bin}/rsb")
        if os.path.dirname(rsb) == os.path.dirname(os.path.realpath(f"{world.bin}/rsb-exec")):
            world.run(rsb, "sync", "out", *option("out", "rsb-exec -q true"), box.name, env={"PATH": "/usr/bin:/bin"})


def test_it_may_call_the_built_in_direction(world):
    with project(world, a="1") as (box, source):
        box.sh("echo -n 2 > b")
        r = sync(world, box, "out", "rsb sync out --builtin && echo done >&2")
        check(b"1 changed" in r.stderr and b"done" in r.stderr, "its output goes to stderr")
        equal(names(source), ["a", "b"])
        box.sh("rm b")
        r = sync(world, box, "out", "rsb sync out", check_status=125)
        check(b"'rsb sync --builtin' alone" in r.stderr, r.stderr)
        equal(names(source), ["a", "b"])
        # Who sets no command has the built-in one anyway, and who says so has it, too.
        sync(world, box, "out", "exit 9", "--builtin")
        equal(names(source), ["a"])
        answer = json.loads(sync(world, box, "out", "exit 9", "--dry-run", "--json").stdout)
        equal((answer["command"], answer["comes"]), ("", []))


def test_a_command_that_fails_or_hangs(world):
    with project(world, a="1") as (box, _):
        sentence(sync(world, box, "out", "exit 3", check_status=125), "sync.out_command ended with status 3")
        sentence(sync(world, box, "in", "kill -9 $$", check_status=125), "sync.in_command ended with status 137")
        sentence(sync(world, box, "out", "true", "--delete-many", check_status=125), "--delete-many", "--builtin")
        fifo = os.path.join(world.fresh(), "fifo")
        os.mkfifo(fifo)
        end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        r = sync(world, box, "out", f"exec 7>{fifo}; sleep 1000 & rsb-exec -q sleep 1000", "-o", "sync.command_timeout=2s", check_status=125)
        sentence(r, "took longer than 2 s")
        os.set_blocking(end, True)
        equal(os.read(end, 1), b"", "nobody of it is left")
        os.close(end)
        check(not os.path.exists(box.state("sync.token")), "its secret is gone")
        world.rsb("sync", "out", box.name)


def start(world, box, command, *args):
    return subprocess.Popen(["rsb", "sync", "out", *option("out", command), *args, box.name], env=world.env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_interrupted_it_ends_with_us(world):
    with project(world, a="1") as (box, _):
        where = world.fresh()
        os.mkfifo(f"{where}/fifo")
        with start(world, box, f"exec 7>{where}/fifo; sleep 1000 & sleep 1000") as rsb:
            with open(f"{where}/fifo", "rb") as end:
                rsb.send_signal(signal.SIGINT)
                equal(end.read(), b"", "nobody of it is left")
            equal(rsb.wait(timeout=20), -signal.SIGINT)
        check(not os.path.exists(box.state("sync.token")), "its secret is gone")
        world.rsb("sync", "out", box.name)


def test_killed_it_takes_it_along(world):
    with project(world, a="1") as (box, _):
        where = world.fresh()
        os.mkfifo(f"{where}/fifo")
        with start(world, box, f"exec 7>{where}/fifo; sleep 1000 & rsb-exec -q sleep 1000 & rsb-exec -q true; echo there >&7; wait") as rsb:
            with open(f"{where}/fifo", "rb") as end:
                equal(end.readline(), b"there\n")
                rsb.kill()
                equal(end.read(), b"", "nobody of it is left")
            equal(rsb.wait(timeout=20), -signal.SIGKILL)
        # What it used goes on.
        equal(box.sh("echo x"), "x\n")
        world.rsb("sync", "out", box.name)


def test_no_two_syncs_side_by_side(world):
    with project(world, a="1") as (box, _):
        where = pathlib.Path(world.fresh())
        os.mkfifo(where / "fifo")
        with start(world, box, f"touch {where}/begun; cat {where}/fifo; rsb-exec -q true; echo first >> {where}/order") as first:
            wait_until((where / "begun").exists, 20, "the command begins")
            # Other verbs go on meanwhile.
            world.rsb("list")
            equal(box.sh("echo x"), "x\n")
            with start(world, box, f"echo second >> {where}/order") as second:
                check(b"waiting for it" in second.stderr.readline(), "it says why it waits")
                (where / "fifo").write_text("go", encoding="utf-8")
                equal((first.wait(timeout=60), second.wait(timeout=60)), (0, 0))
        equal((where / "order").read_text(encoding="utf-8"), "first\nsecond\n")


def test_down_runs_it_once(world):
    with project(world, a="1") as (box, source):
        runs = pathlib.Path(world.fresh(), "runs")
        command = f'echo x >> {runs}; test -d "$RSB_MOUNT/.git" ; cp "$RSB_MOUNT/new" "$RSB_DIR/"'
        box.write("new", b"n")
        for script, status in (("exit 4", 125), ("exit 1", 1)):
            r = world.rsb("down", "--kill", *option("out", script), box.name, check_status=status)
            check(b"stays" in r.stderr, r.stderr)
            check(os.path.ismount(box.mount), "it is mounted still")
        r = world.rsb("down", "--kill", "--json", *option("out", command), box.name)
        equal(json.loads(r.stdout)["synced"], True)
        equal((runs.read_text(encoding="utf-8"), (source / "new").read_text(encoding="utf-8")), ("x\n", "n"))


def test_down_without_a_mount(world):
    with project(world, a="1") as (box, source):
        box.sh("echo -n n > new")
        world.rsb("umount", box.name)
        world.rsb("down", "--kill", *option("out", 'test -z "$RSB_MOUNT" && rsb-exec -q cat new > new'), box.name)
        equal((source / "new").read_text(encoding="utf-8"), "n")


def test_down_deletes_many_when_told_to(world):
    with project(world, **{f"f{i}": "x" for i in range(40)}) as (box, source):
        box.sh("rm f*")
        r = world.rsb("down", "--kill", box.name, check_status=125)
        check(b"--delete-many" in r.stderr, r.stderr)
        world.rsb("down", "--kill", "--delete-many", box.name)
        equal(names(source), [])


def test_up_that_cannot_bring_it_in_leaves_nothing(world):
    source = world.fresh("src")
    for script in ("exit 1", "rsb-exec -q true; exit 2"):
        r = world.rsb("up", "--name", "never", *option("in", script), source, check_status=125)
        check(b"sync.in_command ended with status" in r.stderr, r.stderr)
        check(not os.path.exists(f"{source}.rsb"), "no mount point")
    sentence(world.rsb("up", "--exclude", "x", *option("in", "true"), source, check_status=125), "--exclude", "sync.in_command")
    equal(json.loads(world.rsb("list", "--json").stdout), [])


def test_up_that_is_interrupted_leaves_nothing(world):
    where = world.fresh()
    os.mkfifo(f"{where}/fifo")
    with subprocess.Popen(["rsb", "up", "--name", "never", *option("in", f"exec 7>{where}/fifo; sleep 1000"), world.fresh("src")],
                          env=world.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as rsb:
        with open(f"{where}/fifo", "rb") as end:
            rsb.send_signal(signal.SIGINT)
            equal(end.read(), b"", "nobody of it is left")
        equal(rsb.wait(timeout=60), -signal.SIGINT)
    equal(json.loads(world.rsb("list", "--json").stdout), [])


def test_up_goes_on_after_one_that_was_killed(world):
    where = pathlib.Path(world.fresh())
    source = world.fresh("src")
    os.mkfifo(where / "fifo")
    with harness.named(world, "again"):
        with subprocess.Popen(["rsb", "up", "--name", "again", *option("in", f"exec cat {where}/fifo"), source], env=world.env,
                              stdin=subprocess.DEVNULL, start_new_session=True) as rsb:
            with open(where / "fifo", "wb"):
                os.killpg(rsb.pid, signal.SIGKILL)
                rsb.wait()
        world.rsb("up", "--name", "again", *option("in", f"touch {where}/run"), source)
        check((where / "run").exists(), "what was not brought in is")
        r = world.rsb("up", "--name", "again", *option("in", "exit 1"), source)
        check(b"up already" in r.stdout, r.stdout)
        world.rsb("down", "--kill", "again")


def test_a_project_does_not_choose_commands(world):
    with project(world, a="1") as (box, source):
        (source / ".rsb").mkdir(exist_ok=True)
        for key in ("in_command", "out_command"):
            (source / ".rsb/config").write_text(f"[sync]\n{key} = touch bad\n", encoding="utf-8")
            r = world.rsb("sync", "out", box.name, check_status=125)
            check(b".rsb/config" in r.stderr and b"rsb trust" in r.stderr, r.stderr)
        world.run("rsb", "trust", str(source))
        world.rsb("sync", "out", box.name)
        check((source / "bad").exists(), "trusted, it is run")
        (source / ".rsb/config").unlink()
    os.remove(f"{world.env['XDG_STATE_HOME']}/rsb/.trusted")


harness.main(globals())
