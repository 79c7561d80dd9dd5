# SPDX-License-Identifier: MIT
"""What people stumble over who have read the README and the manual pages, and nothing else."""

import contextlib
import datetime
import json
import os
import signal
import subprocess

import harness
from harness import answer, check, equal, named, sentence


def test_another_runtime_directory(world):
    """Over ssh, from cron or under su it is another one, or none: the sandboxes are the same."""
    absent = f"{world.tmp}/no-such-runtime"
    with world.sandbox() as box:
        server = world.local_server()
        for runtime in (world.fresh("run"), absent, ""):
            env = {"XDG_RUNTIME_DIR": runtime}
            row, = json.loads(world.rsb("list", "--json", env=env).stdout)
            equal((row["name"], row["state"]), (box.name, "running"), runtime)
            equal(answer(world.rsb("status", "--json", box.name, env=env))["state"], "live", runtime)
            equal(box.exec("echo", "here", env=env).stdout, b"here\n", runtime)
            check(not os.path.exists(absent), "a runtime directory is not ours to make")
            world.rsb("umount", box.name, env=env)
            world.rsb("mount", box.name)
        equal(world.local_server(), server, "there is one rsb-local")
        # What somebody else could write to, as under sudo with our HOME, is not believed in, and that is told.
        os.chmod(world.local(""), 0o770)
        r = world.rsb("list", check_status=125)
        sentence(r, world.local("").rstrip("/"), "must belong to you")
        check(b"unknown" in r.stdout, r.stdout)
        os.chmod(world.local(""), 0o700)
        world.rsb("destroy", box.name, env=env)
    r = world.run("rsb-local", "--idle", "1s", env={"XDG_RUNTIME_DIR": absent}, check_status=2)
    check(absent.encode() in r.stderr and b"--state" in r.stderr, r.stderr)
    check(not os.path.exists(absent), "nor rsb-local's")


def test_doctor_looks_at_the_sidecar(world):
    text = f"{world.fresh()}/text"
    with open(text, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n")
    source = world.fresh("src")
    for path in ("/nope", "/dev/null", source, text):
        env = {"RSB_SIDECAR": path}
        bad = [c["how"] for c in answer(world.rsb("doctor", "--json", env=env, check_status=1))["checks"] if not c["ok"]]
        check(len(bad) == 1 and path in bad[0] and "RSB_SIDECAR" in bad[0], bad)
        sentence(world.rsb("up", source, env=env, check_status=125), path, "RSB_SIDECAR")
    world.rsb("doctor")


def test_until_when_a_sandbox_lives(world):
    """Where it is left alone: in local time, a day of another date with that."""
    env = {"TZ": "ABC-02:30"}
    zone = datetime.timezone(datetime.timedelta(hours=2, minutes=30))

    def end(name, state="running"):
        row, = [row for row in json.loads(world.rsb("list", "--json").stdout) if row["name"] == name]
        equal(row["state"], state)
        then, now = (t.astimezone(zone) for t in (datetime.datetime.fromisoformat(row["end"]),
                                                  datetime.datetime.now(datetime.timezone.utc)))
        return then.strftime("%H:%M" if then.date() == now.date() else "%Y-%m-%d %H:%M"), (then - now).total_seconds()

    def told(r, name, before):
        """The minute may have passed, and what looks at it does not change it."""
        text, left = end(name)
        check(left > 0, left)
        check(f"{before} until {text}" in (r.stdout + r.stderr).decode(), (r.stdout, r.stderr, text))

    with named(world, "lives") as name:
        r = world.rsb("create", name, env=env)
        told(r, name, "lives is made, lives")
        check(b", then it ends with all that is in it: run" in r.stdout, r.stdout)
        check(500 < end(name)[1] <= 600, "ten minutes")
        told(world.rsb("create", name, env=env), name, "was there already, lives")
        line = world.rsb("list", env=env).stdout.decode().split("\n")
        check("END" in line[0].split() and f" {end(name)[0]} " in line[1], line)
        told(world.rsb("down", "--leave", name, env=env), name, "still running")
        equal(world.rsb("down", "--leave", "-q", name).stdout, b"")
        # A daemon keeps it, be it one without a mount.
        equal([row["kept"] for row in json.loads(world.rsb("list", "--json").stdout)], [False])
        world.run("rsb-exec", "-s", name, "true")
        equal([(row["kept"], "end" in row) for row in json.loads(world.rsb("list", "--json").stdout)], [(True, False)])
        check(b" kept " in world.rsb("list").stdout, "no end")
        check(b"was there already, lives for as long as it is used: " in world.rsb("create", name).stdout, "nor here")
    with world.sandbox(up=("-o", "sandbox.ttl=1439min")) as box:
        r = world.rsb("umount", box.name, env=env)
        told(r, box.name, "still running")
        check(r.stdout.endswith(b", then it is paused\n"), r.stdout)
        check(end(box.name)[1] > 86000, "it has a date")
        head, row = world.rsb("list", env=env).stdout.decode().split("\n")[:2]
        equal(row[head.rindex("END"):head.index("MOUNT")].strip(), end(box.name)[0], "in its column")
        world.rsb("mount", box.name)
        check(b" kept " in world.rsb("list").stdout, "while it is mounted it has no end")


def test_home_is_not_a_project(world):
    home = world.fresh("home")
    harness.sentence(world.rsb("up", cwd=home, env={"HOME": home}, check_status=125), "home directory", f"rsb up {home}")


def test_secrets_that_go_in_are_told(world):
    source = world.fresh("src")
    os.makedirs(f"{source}/.ssh")
    for name in (".ssh/id_rsa", ".env"):
        with open(f"{source}/{name}", "w", encoding="ascii") as f:
            f.write("x")
    with named(world, "told") as name:
        r = world.rsb("up", "--name", name, source)
        sentence(r, "looks like secrets", ".env", ".ssh", ".rsbignore", "--exclude")
        check(b"id_rsa" not in r.stderr, "with its directory")
        equal(world.rsb("up", "--name", name, source).stderr, b"", "nothing goes in")
        world.rsb("down", "--kill", name)
        equal(world.rsb("up", "-q", "--name", name, source).stderr, b"")
        world.rsb("down", "--kill", name)
        with open(f"{source}/.rsbignore", "w", encoding="ascii") as f:
            f.write(".env\n.ssh\n")
        equal(world.rsb("up", "--name", name, source).stderr, b"", "they stay here")
        equal(os.listdir(f"{source}.rsb"), [".rsbignore"])


def test_what_is_gone_was_not_brought_out(world):
    with world.sandbox() as box:
        world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
        harness.sentence(world.rsb("down", "--kill", box.name, check_status=125), "is gone")
        harness.sentence(world.rsb("umount", box.name, check_status=125), "is gone")


def test_without_home(world):
    """As mount(8) at boot has it: passwd(5) says where one is at home."""
    home = world.fresh("home")
    passwd = f"{world.tmp}/passwd"
    with open(passwd, "w", encoding="ascii") as f:
        f.write(f"me:x:{os.getuid()}:{os.getgid()}::{home}:/bin/sh\n")
    script = f"mount --bind {passwd} /etc/passwd; unset HOME XDG_STATE_HOME XDG_CONFIG_HOME; exec rsb \"$@\""
    equal(json.loads(world.run_with_mounts(script, "list", "--json").stdout), [])
    check(os.path.isdir(f"{home}/.local/state/rsb"), os.listdir(home))
    os.makedirs(f"{home}/.config/rsb")
    with open(f"{home}/.config/rsb/config", "w", encoding="ascii") as f:
        f.write("[sandbox]\nno_such_key = 1\n")
    sentence(world.run_with_mounts(script, "create", "x", check_status=125), f"{home}/.config/rsb/config", "no_such_key")


def test_ways_to_ask_for_help(world):
    text = world.rsb("--help").stdout
    for words in (("-h",), ("help",)):
        equal(world.rsb(*words).stdout, text, words)
    equal(world.rsb("help", "up").stdout, world.rsb("up", "--help").stdout)
    equal(world.rsb("help", "exec").stdout, world.rsb("exec", "--help").stdout)
    sentence(world.rsb("help", "upp", check_status=2), "no verb 'upp'")
    for words in (("-V",), ("version",)):
        equal(world.rsb(*words).stdout, world.rsb("--version").stdout, words)
    check(b"--disk SIZE" in world.run("rsb-local", "--help").stdout, "each option has a line")


def test_up_inside_of_another(world):
    with world.sandbox() as box:
        inner = f"{box.source}/sub/inner"
        os.makedirs(inner)
        r = world.run("rsb", "up", cwd=inner, check_status=125)
        sentence(r, inner, f"lies in {box.source},", box.name, f"rsb up {box.source}", "rsb up .")
        sentence(world.run("rsb", "up", cwd=box.mount, check_status=125), "in the mount of a sandbox", box.name)
        world.rsb("umount", box.name)
        os.makedirs(box.mount, exist_ok=True)
        sentence(world.run("rsb", "up", cwd=box.mount, check_status=125), box.mount, f"rsb mount {box.name}")
        equal([row["name"] for row in json.loads(world.rsb("list", "--json").stdout)], [box.name])
        with named(world, "inner"):
            world.run("rsb", "up", ".", "-m", f"{world.tmp}/mnt-inner", cwd=inner)
            world.rsb("down", "--leave", "inner")
            # It is one of its own from now on.
            world.run("rsb", "up", cwd=inner)
            world.rsb("down", "--kill", "inner")


def stages(world, source, mount, name):
    """Where an up can be interrupted: it has its mount point, its sandbox, and a large tree on the way."""
    state = f"{world.env['XDG_STATE_HOME']}/rsb/{name}"
    yield "mount point", lambda: os.path.exists(mount)
    yield "intent", lambda: os.path.exists(f"{state}/intent")
    yield "sandbox", lambda: os.path.exists(f"{state}/state.json")


def test_an_interrupted_up_leaves_nothing(world):
    source = world.fresh("src")
    mount = f"{source}.rsb"
    block = os.urandom(1 << 20)
    for i in range(8):
        with open(f"{source}/{i}", "wb") as f:
            for _ in range(16):
                f.write(block)
    world.rsb("doctor", check_status=None)  # its rsb-local runs
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number, (what, reached) in zip(numbers, stages(world, source, mount, "cut")):
        for group in (False, True):  # by kill(1), and by a terminal
            with subprocess.Popen(["rsb", "up", "--name", "cut", source], env=world.env, stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, start_new_session=True) as p:
                harness.wait_until(reached, 20, what)
                (os.killpg if group else os.kill)(p.pid, number)
                out, err = p.communicate(timeout=60)
            equal((p.returncode, out), (-number, b""), what)
            sentence(subprocess.CompletedProcess([], 0, b"", err), "rsb up: interrupted")
            check(not os.path.exists(mount), what)
            equal(json.loads(world.rsb("list", "--json").stdout), [], what)
    equal(json.loads(world.api("GET", "/sandboxes")), [], "no sandbox is left at its host")
    # Nor is anything wrong with the next one.
    with named(world, "cut"):
        world.rsb("up", "--name", "cut", source)
        equal(sorted(os.listdir(mount)), sorted(os.listdir(source)))
        world.rsb("down", "--kill", "cut")


def test_an_up_that_was_killed_is_made_whole(world):
    """Nobody was left to clear up: the next one brings in what is missing."""
    source = world.fresh("src")
    for i in range(40):
        with open(f"{source}/{i}", "wb") as f:
            f.write(os.urandom(2 << 20))
    world.rsb("doctor", check_status=None)
    state = f"{world.env['XDG_STATE_HOME']}/rsb/killed"
    with named(world, "killed"):
        with subprocess.Popen(["rsb", "up", "--name", "killed", source], env=world.env, stdout=subprocess.DEVNULL,
                              start_new_session=True) as p:
            harness.wait_until(lambda: os.path.exists(f"{state}/state.json"), 20, "it has a sandbox")
            os.killpg(p.pid, signal.SIGKILL)
        check(not os.path.exists(f"{state}/manifest"), "it was killed before the end of the sync")
        r = world.rsb("up", "--name", "killed", source)
        check(b"up again (40 files" in r.stdout, r.stdout)
        for i in range(40):
            with open(f"{source}/{i}", "rb") as here, open(f"{source}.rsb/{i}", "rb") as there:
                check(here.read() == there.read(), i)
        check(b"files" not in world.rsb("up", "--name", "killed", source).stdout, "nothing is brought in twice")


def test_a_host_that_does_not_answer_is_not_lost(world):
    with named(world, "kept") as name:
        world.rsb("create", name)
        pid = world.local_server()["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            sentence(world.rsb("create", "other", check_status=125), "rsb-local runs, but does not answer")
        finally:
            os.kill(pid, signal.SIGCONT)
        row, = json.loads(world.rsb("list", "--json").stdout)
        equal((row["name"], row["state"]), (name, "running"))
        equal(world.local_server()["pid"], pid)


def test_in_a_mount_that_is_gone(world):
    """The shell stays where it was."""
    here = ("current directory", "cd out of it")
    with world.sandbox() as box:
        source_cwd = {"cwd": box.source}
        sentence(world.run("rsb", "mount", cwd=box.mount, check_status=125), "mounted already", box.mount)
        before = os.getcwd()
        os.chdir(box.mount)
        try:
            world.rsb("down", "--leave", "--force", box.name)
            for argv in (("rsb", "status"), ("rsb", "up"), ("rsb", "mount"), ("rsb", "trust"), ("rsb-exec", "true")):
                sentence(world.run(*argv, check_status=125), *here)
            # What names it needs no directory.
            sentence(world.rsb("status", box.name, check_status=125), f"rsb mount {box.name}")
            equal(world.run("rsb-exec", "-s", box.name, "pwd").stdout, b"/home/user/workspace\n")
            world.rsb("down", "--leave", box.name)
            check(b"anew" not in world.run("rsb", "mount", **source_cwd).stdout, "it is not in it")
            world.rsb("umount", box.name)
            os.makedirs(box.mount, exist_ok=True)
            check(b"cd to it anew" in world.run("rsb", "mount", cwd=box.mount).stdout, "it is in what is covered")
        finally:
            os.chdir(before)
        box.sh("true")


def test_a_sandbox_that_is_gone(world):
    with world.sandbox() as box:
        world.rsb("umount", box.name)
        sandbox, = json.loads(world.rsb("list", "--json").stdout)
        world.api("DELETE", f"/sandboxes/{sandbox['sandbox']}")
        for verb in (("status",), ("umount",), ("mount",), ("sync", "out"), ("sync", "status"), ("exec", "-s"), ("create",),
                     ("down",), ("down", "--leave")):
            more = ("true",) if verb[0] == "exec" else ()
            sentence(world.rsb(*verb, box.name, *more, check_status=125), f"the sandbox {box.name} is gone",
                     f"rsb destroy {box.name}")
            check(b"snapshot restore" not in world.rsb(*verb, box.name, *more, check_status=125).stderr, "there is none")
        world.rsb("destroy", box.name)


def test_what_is_gone_and_can_be_restored(world):
    with world.sandbox() as box:
        box.write("file", b"x")
        world.rsb("snapshot", box.name)
        world.rsb("umount", box.name)
        sandbox, = json.loads(world.rsb("list", "--json").stdout)
        world.api("DELETE", f"/sandboxes/{sandbox['sandbox']}")
        sentence(world.rsb("down", box.name, check_status=125), f"rsb snapshot restore {box.name}", f"rsb destroy {box.name}")
        world.rsb("snapshot", "restore", box.name)


def test_by_force_what_is_gone_is_down(world):
    source = world.fresh("src")
    for how in ((), ("--leave",), ("--kill",)):
        with named(world, "away") as name:
            world.rsb("up", "--name", name, source)
            os.kill(world.local_server()["pid"], signal.SIGKILL)
            r = world.rsb("down", "-f", *how, name)
            check(r.stdout.startswith(b"away is down"), r.stdout)
            if "--kill" not in how:
                equal(answer(world.rsb("down", "-f", "--json", *how, name))["end"], "gone", how)
                check(b"its sandbox was gone already" in world.rsb("down", "-f", *how, name).stdout, how)
                sentence(world.rsb("down", *how, name, check_status=125), "is gone")


def test_what_is_gone_counts_no_more(world):
    with contextlib.ExitStack() as stack:
        for name in "one", "two":
            world.rsb("create", stack.enter_context(named(world, name)))
        third = stack.enter_context(named(world, "three"))
        sentence(world.rsb("create", "-o", "sandbox.max=2", third, check_status=125), "there are 2 sandboxes already")
        one, = [row for row in json.loads(world.rsb("list", "--json").stdout) if row["name"] == "one"]
        world.api("DELETE", f"/sandboxes/{one['sandbox']}")
        world.rsb("create", "-o", "sandbox.max=2", third)


def test_a_shell_in_the_mount(world):
    with world.sandbox() as box:
        script = f"echo $$; rsb {{}} {box.name}; exit $?"
        for verb in ("umount", "down --leave", "destroy"):
            r = world.run("sh", "-c", script.format(verb), cwd=box.mount, check_status=125)
            sentence(r, f"in use by {r.stdout.decode().strip()} (sh)", "; cd out of it first, or use --force")
        with subprocess.Popen(["sleep", "1000"], cwd=box.mount) as p:
            r = world.rsb("umount", box.name, check_status=125)
            p.kill()
        check(b"cd out" not in r.stderr, "it is not ours")


def test_what_takes_long_is_told_when_asked(world):
    """Without a terminal nothing is, unless by -v."""
    source = world.fresh("src")
    with open(f"{source}/file", "wb") as f:
        f.write(bytes(2048))
    with named(world, "long") as name:
        r = world.rsb("up", "--name", name, "-q", "-v", source)
        told = [line.split(": ") for line in r.stderr.decode().strip().split("\n")]
        for what in ("making the sandbox", "syncing in", "looking at what came", "mounting"):
            at = [line for line in told if line[:2] == ["rsb up", what]]
            equal([len(line) for line in at], [2, 3], what)
            check(at[1][2].startswith("done in "), at)
        check(["rsb up", "syncing in"] in told and any(line[-1].endswith("1 file, 2.0 KiB") for line in told), told)
        equal(world.rsb("up", "--name", name, source).stderr, b"")
        r = world.rsb("sync", "out", "-v", name)
        check(b"rsb sync: syncing out: done in" in r.stderr, r.stderr)
        equal(world.rsb("sync", "out", name).stderr, b"")
        equal(world.rsb("sync", "out", "-vq", name).stderr, b"")


def test_errors_are_no_json(world):
    """A sentence and the exit status, as of gh and docker; nothing that a reader would take for a result."""
    for verb in (("up", "/no/such"), ("down", "nobody"), ("status", "nobody"), ("create", "a/b"), ("destroy", "nobody"),
                 ("mount", "nobody"), ("umount", "nobody"), ("sync", "out", "nobody"), ("trust", "/no/such"),
                 ("list", "-o", "nonsense"), ("doctor", "-o", "nonsense")):
        r = world.rsb(verb[0], "--json", *verb[1:], check_status=None)
        check(r.returncode in (2, 125), verb)
        equal(r.stdout, b"", verb)
        sentence(r, f"rsb {verb[0]}: ")
    world.rsb("create", "one")
    r = world.rsb("destroy", "--json", "nobody", "one", check_status=125)
    equal(answer(r), {"destroyed": ["one"]})
    sentence(r, "nobody")


harness.main(globals())
