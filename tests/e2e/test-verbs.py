# SPDX-License-Identifier: MIT
"""The verbs of rsb as a newcomer meets them: run twice, in the wrong order, with what they made still there."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import harness
from harness import answer, check, equal, named, sentence


def test_up_twice(world):
    source = world.fresh("src")
    with open(f"{source}/file", "w", encoding="ascii") as f:
        f.write("x")
    mount = f"{source}.rsb"
    with named(world, "twice") as name:
        up = ("up", "--name", name, source)
        first = answer(world.rsb(*up, "--json"))
        equal((first["name"], first["made"], first["mount"], first["dir"], first["files"]),
              (name, True, mount, source, 1))
        check(b"; 1 sandbox of ours" in world.rsb("doctor").stdout, "one of anything is not many")
        r = world.rsb(*up)
        check(b"is up already: cd " + mount.encode() in r.stdout, r.stdout)
        second = answer(world.rsb(*up, "--json"))
        equal((second["sandbox"], second["made"]), (first["sandbox"], False), "the same sandbox")
        # From the directory itself, and what it says of the one that is mounted.
        world.run("rsb", "up", "--name", name, cwd=source)
        sentence(world.run("rsb", "up", cwd=mount, check_status=125), "in the mount of a sandbox")
        sentence(world.rsb(*up, "-m", f"{world.tmp}/elsewhere", check_status=125), "up already", mount, "rsb umount")
        check(not os.path.exists(f"{world.tmp}/elsewhere"), "nothing is made")
        # Without the mount, and without the daemon.
        world.run("umount", mount)
        harness.wait_until(lambda: b"not mounted" in world.rsb("status", name, check_status=None).stderr, 10, "it ends")
        check(b"is up again" in world.rsb(*up).stdout, "it is said that it came back")
        check(os.path.exists(f"{mount}/file"), "it is mounted again")
        world.rsb("down", "--kill", name)
    check(not os.path.exists(mount), "the mount point that up made is gone")


def slow_rsb(world):
    """Its rsb-mount starts when there is a file "go" beside it, and says by one that it was called."""
    base = world.fresh("slow")
    folder = f"{base}/bin"
    os.mkdir(folder)
    # Where programs are installed the sidecar is not beside them.
    beside = f"{os.path.dirname(world.bin)}/libexec"
    if os.path.exists(beside):
        os.symlink(beside, f"{base}/libexec")
    for program in os.listdir(world.bin):
        if program not in ("rsb", "rsb-mount"):
            os.symlink(f"{world.bin}/{program}", f"{folder}/{program}")
    shutil.copy(f"{world.bin}/rsb", folder)
    with open(f"{folder}/rsb-mount", "w", encoding="ascii") as f:
        f.write(f"""#!/bin/sh
touch {folder}/called
until [ -e {folder}/go ]; do sleep 0.05; done
exec {world.bin}/rsb-mount "$@"
""")
    os.chmod(f"{folder}/rsb-mount", 0o755)
    return folder


def test_up_by_the_directory(world):
    """One that was made of it, however it is called; of two it has to be said which."""
    with world.sandbox() as box:
        r = world.rsb("up", box.source)
        check(f"{box.name} is up already".encode() in r.stdout, r.stdout)
        with harness.named(world, "second") as name:
            world.rsb("up", "--name", name, "-m", f"{world.tmp}/second", box.source)
            sentence(world.rsb("up", box.source, check_status=125), "2 sandboxes are made of", "second", box.name, "--name")
            world.rsb("up", "--name", box.name, box.source)


def test_up_while_another_mounts(world):
    source = world.fresh("src")
    slow = slow_rsb(world)
    with named(world, "both") as name:
        up = ("up", "--name", name, source)
        first = subprocess.Popen([f"{slow}/rsb", *up], env=world.env, stdout=subprocess.PIPE)
        harness.wait_until(lambda: os.path.exists(f"{slow}/called"), 30, "it starts a daemon")
        second = subprocess.Popen(["rsb", *up], env=world.env, stdout=subprocess.PIPE)
        # It waits for the first, which took its mount for a failure of its own otherwise and destroyed the sandbox.
        with contextlib.suppress(subprocess.TimeoutExpired):
            second.wait(timeout=3)
        equal(second.poll(), None, "the second waits")
        with open(f"{slow}/go", "w", encoding="ascii"):
            pass
        out, _ = first.communicate(timeout=60)
        equal(first.returncode, 0, "the first")
        check(b"is up (0 files" in out, out)
        out, _ = second.communicate(timeout=60)
        equal(second.returncode, 0, "the second")
        check(b"is up already" in out, out)
        world.run("rsb-exec", "true", cwd=f"{source}.rsb")


def opens(pid, path):
    """Itself, or a child that does its work."""
    with contextlib.suppress(OSError):
        pids = [pid, *pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return any(os.readlink(f"/proc/{p}/fd/{fd}") == path for p in pids for fd in os.listdir(f"/proc/{p}/fd"))
    return False


def test_up_while_another_destroys(world):
    source = world.fresh("src")
    with named(world, "again") as name:
        state = f"{world.env['XDG_STATE_HOME']}/rsb/{name}"
        os.makedirs(state)
        with open(f"{state}/lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen(["rsb", "up", "--name", name, source], env=world.env, stderr=subprocess.PIPE) as up:
                harness.wait_until(lambda: opens(up.pid, lock.name), 30, "it waits for the lock")
                equal(up.stderr.readline(), b"rsb: another rsb is changing the sandbox again: waiting for it\n")
                # Longer than a lock is waited for at once.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    up.wait(timeout=11)
                equal(up.poll(), None, "it goes on waiting")
                shutil.rmtree(state)
                fcntl.flock(lock, fcntl.LOCK_UN)
                equal(up.wait(timeout=60), 0, "it makes another")


def test_a_result_that_cannot_be_written(world):
    with named(world, "full") as name, open("/dev/full", "wb") as full:
        world.rsb("create", name)
        r = subprocess.run(["rsb", "list"], env=world.env, stdout=full, stderr=subprocess.PIPE, check=False, timeout=30)
        equal(r.returncode, 125, "list")
        sentence(r, "No space left")


def test_up_after_the_server_was_killed(world):
    """The daemon waits for what will not come back: up asks whether the sandbox is there."""
    source = world.fresh("src")
    with open(f"{source}/file", "w", encoding="ascii") as f:
        f.write("x")
    with named(world, "orphan") as name:
        first = answer(world.rsb("up", "--name", name, "--json", source))
        os.kill(world.local_server()["pid"], signal.SIGKILL)
        harness.wait_until(lambda: answer(world.rsb("status", "--json", name))["state"] != "live", 30, "it is cut off")
        r = world.rsb("up", "--name", name, "--json", source)
        check(b"is gone with what was in it: making another" in r.stderr, r.stderr)
        second = answer(r)
        check(second["made"] and second["sandbox"] != first["sandbox"], second)
        check(os.path.exists(f"{source}.rsb/file"), "it is mounted")
        equal(answer(world.rsb("status", "--json", name))["state"], "live")


def test_who_keeps_it_busy(world):
    with world.sandbox() as box:
        box.write("file", b"x")
        ways = {"open": ("exec sleep 1000 < file", box.mount), "cwd": ("exec sleep 1000", box.mount)}
        for script, cwd in ways.values():
            with subprocess.Popen(["sh", "-c", script], cwd=cwd) as p:
                try:
                    harness.wait_until(lambda: harness.comm(p.pid) == "sleep", 10, "it sleeps")
                    for verb in ("umount",), ("down", "--leave"):
                        sentence(world.rsb(*verb, box.name, check_status=125), f"is in use by {p.pid} (sleep);", "--force")
                finally:
                    p.kill()
        world.rsb("umount", box.name)


def test_up_looks_before_it_makes(world):
    source = world.fresh("src")
    full = world.fresh()
    with open(f"{full}/file", "w", encoding="ascii"):
        pass
    for at, words in ((full, "not empty"), (f"{source}/mnt", "lies in the directory that is synced"),
                      (source, "lies in the directory that is synced"), ("/proc", "mount point of 'proc'")):
        r = world.rsb("up", "--name", "early", "-m", at, source, check_status=125)
        sentence(r, words)
        equal(os.listdir(source), [], "nothing stays")
    sentence(world.rsb("up", "--name", "early", source, check_status=125, env={"RSB_SIDECAR": "/no/such"}), "/no/such")
    check(not os.path.exists(f"{source}.rsb"), "no mount point stays")
    equal(json.loads(world.rsb("list", "--json").stdout), [], "no sandbox was made")


def test_the_mount_of_killed_daemons_goes(world):
    """SIGKILL for all of them at once leaves a dead mount, with somebody in it."""
    with world.sandbox() as box:
        for again in (("up", "--name", box.name, "-m", box.mount, box.source), ("mount", box.name),
                      ("down", "--leave", box.name)):
            pids = [pid for pid, line in harness.processes_of(world.tmp) if line.strip().endswith(box.mount)]
            check(len(pids) >= 3, "supervisor, notifier, daemon")
            held = os.open(box.path("held"), os.O_CREAT | os.O_WRONLY, 0o644)
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in pids:
                    os.kill(pid, number)
            check(box.mount in harness.mounts_below(world.tmp), "a dead mount")
            world.rsb(*again)
            with contextlib.suppress(OSError):
                os.close(held)
            equal(box.mount in harness.mounts_below(world.tmp), again[0] != "down", again[0])
        world.rsb("mount", box.name, box.mount)
        box.sh("true")


def test_another_program_goes_on_with_the_mount(world):
    new = world.fresh("new")
    for program in os.listdir(world.bin):
        if program in ("rsb", "rsb-mount"):
            shutil.copy(f"{world.bin}/{program}", new)
        else:
            os.symlink(f"{world.bin}/{program}", f"{new}/{program}")
    rsb = f"{new}/rsb"
    with world.sandbox() as box, open(f"{box.mount}/open", "wb", buffering=0) as f:
        before = answer(world.rsb("status", "--json", box.name))
        equal(before["program"], os.path.realpath(f"{world.bin}/rsb-mount"))
        sentence(world.rsb("mount", "--force", box.name, check_status=2), "--upgrade")
        sentence(world.run(rsb, "mount", "--upgrade", "nobody", check_status=125), "nobody")
        with subprocess.Popen(["rsb-exec", "sleep", "1000"], cwd=box.mount, env=world.env, stderr=subprocess.PIPE) as p:
            harness.wait_until(lambda: answer(world.rsb("status", "--json", box.name))["commands"], 30, "it runs")
            sentence(world.run(rsb, "mount", "--upgrade", box.name, check_status=125), "commands run", "--force")
            p.terminate()
        check(b"is served by" in world.run(rsb, "mount", "--upgrade", box.mount).stdout, "it is said")
        f.write(b"content")
        after = answer(world.rsb("status", "--json", box.name))
        equal((after["program"], after["fs"]["upgrades"], after["fs"]["crashes"]), (f"{new}/rsb-mount", 1, 0))
        check(after["pid"] != before["pid"] and after["version"] == before["version"], after)
        equal(world.run("rsb-exec", "cat", "open", cwd=box.mount).stdout, b"content")
        check(b"goes on with the mount" in pathlib.Path(world.env["XDG_STATE_HOME"], "rsb", box.name, "events").read_bytes(),
              "the event log says so")
        sentence(world.rsb("mount", box.name, check_status=125), "mounted already")
        world.run(rsb, "mount", "--upgrade", "--quiet", cwd=box.mount)
    with named(world, "unmounted") as name:
        world.rsb("create", name)
        sentence(world.run(rsb, "mount", "--upgrade", name, check_status=125), "not mounted")


def test_umount_while_other_sandboxes_run(world):
    """One that was made while the mount was there has no copy of it, which would keep its daemon."""
    with world.sandbox() as box, named(world, "later") as name:
        world.rsb("create", name)
        server = world.local_server()["pid"]
        # Those of a thread that has just ended go over to another one.
        monitors = [pid for path in pathlib.Path(f"/proc/{server}/task").glob("*/children")
                    for pid in path.read_text().split()]
        check(len(monitors) >= 2, monitors)
        for pid in monitors:
            check(b"fuse.rsb" not in pathlib.Path(f"/proc/{pid}/mountinfo").read_bytes(), f"a copy in {pid}")
        for _ in range(2):
            pid = answer(world.rsb("status", "--json", box.name))["pid"]
            world.run("fusermount3", "-u", box.mount)
            harness.wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), 10, "the daemon ends")
            world.rsb("mount", box.name)
        equal(world.rsb("exec", "-s", name, "echo", "here").stdout, b"here\n")


def test_mount_points_that_we_made(world):
    with named(world, "made") as name:
        first = answer(world.rsb("create", "--json", name))
        equal(first["made"], True)
        check(b"was there already" in world.rsb("create", name).stdout, "it is said")
        equal(answer(world.rsb("create", "--json", name)), {**first, "made": False})
        at = f"{world.tmp}/made-by-mount"
        equal(answer(world.rsb("mount", "--json", name, at))["mount"], at)
        check(os.path.ismount(at), "it is mounted at a directory that was not there")
        sentence(world.rsb("mount", name, check_status=125), "mounted already", at)
        equal(answer(world.rsb("umount", "--json", name))["mount"], at)
        check(not os.path.exists(at), "umount removes it")
        for ours in (True, False):  # the other one lies where one was that we made
            world.rsb("mount", name)
            check(os.path.ismount(at), "it comes back where it was")
            world.run("fusermount3", "-u", at)
            harness.wait_until(lambda: not daemons(world), 10, "it ends")
            equal(os.path.exists(at), not ours, "the daemon removes it, whoever unmounts")
            os.mkdir(at) if ours else os.rmdir(at)
        mine = world.fresh()
        world.rsb("mount", name, mine)
        world.rsb("umount", name)
        check(os.path.isdir(mine), "it is not ours to remove")
        sentence(world.rsb("mount", name, f"{world.tmp}/no/such", check_status=125), "/no/such")
        world.rsb("mount", name, at)
        equal(answer(world.rsb("destroy", "--json", name)), {"destroyed": [name]})
        check(not os.path.exists(at), "destroy removes it")


def test_json_of_all_verbs(world):
    r = world.rsb("doctor", "--json", check_status=None)
    doctor = answer(r)
    equal(doctor["ok"], r.returncode == 0)
    check(all(set(c) == {"what", "ok", "how"} for c in doctor["checks"]), doctor)
    with world.sandbox() as box:
        status = answer(world.rsb("status", "--json", box.name))
        equal((status["name"], status["mounted"], status["mountpoint"]), (box.name, True, box.mount))
        equal([b["name"] for b in json.loads(world.rsb("list", "--json").stdout)], [box.name])
        down = answer(world.rsb("down", "--leave", "--json", box.name))
        equal((down["name"], down["end"]), (box.name, "left"))
        equal(answer(world.rsb("down", "--kill", "--json", box.name))["end"], "killed")


def daemons(world):
    """One daemon has a supervisor, a notifier and itself."""
    return {p for p, c in harness.processes_of(world.env["XDG_STATE_HOME"]) if "rsb-mount" in c}


def test_commands_without_a_mount(world):
    with named(world, "bare") as name:
        world.rsb("create", name)
        run = ("rsb-exec", "-o", "exec.linger=3s", "-s", name)
        # Two at once find one daemon.
        first = [subprocess.Popen([*run, "sh", "-c", "echo $0; sleep 1", str(i)], env=world.env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for i in range(2)]
        equal([p.communicate(timeout=60)[0] for p in first], [b"0\n", b"1\n"])
        equal([p.returncode for p in first], [0, 0])
        before = daemons(world)
        equal(len(before), 3, "processes of one daemon")
        equal(world.run(*run, "sh", "-c", "cat; pwd; exit 3", input=b"in", check_status=3).stdout,
              b"in/home/user/workspace\n")
        equal(world.rsb("exec", "-s", name, "true").returncode, 0)
        equal(daemons(world), before, "the same daemon")
        status = answer(world.rsb("status", "--json", name))
        equal((status["mounted"], status["mountpoint"], status["state"]), (False, "", "live"))
        check(0 < status["linger_s"] <= 3, status)
        sentence(world.rsb("umount", name, check_status=125), "not mounted")
        # What a command leaves behind counts as long as it lives.
        world.run(*run, "sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $! > pid")
        equal(answer(world.rsb("status", "--json", name))["linger_s"], 0)
        time.sleep(4)
        equal(daemons(world), before, "it stays")
        world.run(*run, "sh", "-c", "kill $(cat pid)")
        harness.wait_until(lambda: not daemons(world), 20, "it ends by itself")
        # The next command starts another one, which gives way to a mount and is ended by destroy.
        world.run(*run, "true")
        p = subprocess.Popen([*run, "sh", "-c", "echo runs; sleep 300"], env=world.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"runs\n")
        mount = f"{world.tmp}/mnt-bare"
        r = world.rsb("mount", name, mount, check_status=125)
        sentence(r, "1 command runs in it ('sh -c echo runs; sleep 300'); wait for that")
        check(b"--force" not in r.stderr, "which mount does not have")
        p.terminate()
        p.wait(timeout=20)
        world.rsb("mount", name, mount)
        equal(len(daemons(world)), 3, "one daemon")
        check(os.path.exists(f"{mount}/pid"), "it is mounted")
        world.rsb("umount", name)
        world.run(*run, "true")
        world.rsb("destroy", name)
        equal(daemons(world), set(), "destroy ends it")


def test_up_takes_over_from_a_daemon_without_a_mount(world):
    with world.sandbox() as box:
        world.rsb("umount", box.name)
        world.run("rsb-exec", "-s", box.name, "sh", "-c", "echo there > file")
        world.rsb("up", "--name", box.name, "-m", box.mount, box.source)
        equal(box.read("file"), b"there\n")
        equal(len(daemons(world)), 3, "one daemon")
        world.rsb("down", "--leave", box.name)
        r = world.run("rsb-exec", "true", cwd=box.source)
        sentence(r, "note: ", "rsb mount")
        world.rsb("down", "--leave", box.name)
        equal(daemons(world), set(), "down ends it")


def test_time_between_term_and_kill(world):
    """exec.grace is that of the daemon, which sees the client go."""
    with world.sandbox(up=("-o", "exec.grace=500ms")) as box:
        # A child that a shell has just forked may still have its trap.
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "mkfifo /tmp/fifo; exec 3<>/tmp/fifo; trap 'echo term >> log' TERM; "
                              "echo runs; while :; do read line <&3; done"],
                             cwd=box.mount, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"runs\n")
        p.kill()
        start = time.monotonic()
        harness.wait_until(lambda: box.status()["commands"] == 0, 10, "it ends")
        took = time.monotonic() - start
        check(0.3 < took < 2.5, f"it took {took} s")
        equal(box.read("log"), b"term\n")


def test_output_of_those_who_stay(world):
    """exec.drain: what holds the output after the command's end is listened to for a while."""
    with world.sandbox() as box:
        late = "(sleep 1; echo late; sleep 300) & echo early"
        start = time.monotonic()
        equal(box.exec("-o", "exec.drain=4s", "sh", "-c", late).stdout, b"early\nlate\n")
        check(3.5 < time.monotonic() - start < 20, "until the time is over")
        equal(box.exec("-o", "exec.drain=0", "sh", "-c", late).stdout, b"early\n")
        # Nobody holds it: nothing is waited for.
        start = time.monotonic()
        equal(box.exec("-o", "exec.drain=20s", "sh", "-c", "(sleep 0.5; echo late) & echo early").stdout,
              b"early\nlate\n")
        check(time.monotonic() - start < 15, "it ends with the last writer")
        box.sh("kill $(pidof sleep) || true")


def test_a_project_says_what_does_no_harm(world):
    source = world.fresh("src")
    os.mkdir(f"{source}/.rsb")
    with open(f"{source}/.rsb/config", "w", encoding="ascii") as f:
        f.write("[sync]\nexclude = left-out\n")
    for name in ("left-out", "kept"):
        with open(f"{source}/{name}", "w", encoding="ascii"):
            pass
    with world.sandbox(source) as box:
        equal(os.listdir(box.mount), ["kept"], "what is synced")
        with open(f"{source}/.rsb/config", "a", encoding="ascii") as f:
            f.write("[exec]\nenv = MINE\n")
        show = ("sh", "-c", "echo $MINE")
        r = box.exec(*show, env={"MINE": "x"}, check_status=125)
        sentence(r, f"{source}/.rsb/config, line 4", "exec.env", "rsb trust")
        equal(answer(world.run("rsb", "trust", "--json", cwd=source)), {"file": f"{source}/.rsb/config"})
        equal(box.exec(*show, env={"MINE": "x"}).stdout, b"x\n")
        with open(f"{source}/.rsb/config", "a", encoding="ascii") as f:
            f.write("# changed\n")
        sentence(box.exec(*show, check_status=125), "rsb trust")
        os.remove(f"{source}/.rsb/config")
        # What the sandbox wrote is its own.
        box.sh("mkdir .rsb; printf '[e2b]\\ndomain = evil\\n' > .rsb/config")
        sentence(world.run("rsb", "trust", cwd=box.mount, check_status=1), "nothing is held back from git here on this mount")
        r = world.run("rsb", "create", "inside", cwd=box.mount)
        world.rsb("destroy", "inside")
    os.remove(f"{world.env['XDG_STATE_HOME']}/rsb/.trusted")


def has_no_daemon(box):
    """As rsb sees it: a process that is about to end has no environment any more, but its lock."""
    with open(box.state("daemon.lock"), "rb") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_mount_by_mount(world):
    """mount -t fuse.rsb and fstab, with the helper in /sbin, where the machine has nothing of ours."""
    if os.geteuid() != 0:
        print("     not as an ordinary user: mount(8) takes the type and the helper from root alone")
        return
    with world.sandbox() as box:
        box.write("file", b"x")
        world.rsb("umount", box.name)
        sbin = world.fresh("sbin")
        os.symlink(f"{world.bin}/rsb-mount", f"{sbin}/mount.fuse.rsb")
        fstab = f"{world.tmp}/fstab"
        mount = world.fresh("mnt")
        with open(fstab, "w", encoding="ascii") as f:
            f.write(f"{box.name} {mount} fuse.rsb noauto,_netdev,nofail,exec.grace=5s,mount.sync=on 0 0\n")
        script = f"mount --bind {sbin} /sbin; {{}}; cat {mount}/file; umount {mount}"
        for how in (f"mount -t fuse.rsb -o ro {box.name} {mount}", f"mount -T {fstab} {mount}"):
            r = world.run_with_mounts(script.format(how))
            equal(r.stdout, b"x", how)
            harness.wait_until(lambda: has_no_daemon(box), 20, "the daemon ends")


def test_a_state_that_is_of_no_use(world):
    """Damaged, not to be written, of a service that does not answer: a sentence at once, and nothing is left."""
    nowhere = {"E2B_API_KEY": "k", "E2B_API_URL": "http://127.0.0.1:9"}
    source = world.fresh("src")
    with named(world, "useless") as name:
        for verb in (("up", "--name", name, source), ("create", name)):
            sentence(world.rsb(*verb, check_status=125, env=nowhere), "cannot create", "127.0.0.1:9")
        equal(json.loads(world.rsb("list", "--json").stdout), [], "nothing was made")
        world.rsb("create", name)
        path = os.path.join(world.env["XDG_STATE_HOME"], "rsb", name, "state.json")
        with open(path, encoding="ascii") as f:
            good = f.read()
        at = f"{source}/no-mount"
        verbs = (("down", name), ("destroy", name), ("mount", name, at), ("exec", "-s", name, "true"), ("create", name))
        with open(path, "w", encoding="ascii") as f:
            f.write(good.replace('"local"', '"e2b"'))
        for verb in verbs:
            sentence(world.rsb(*verb, check_status=125, env=nowhere, timeout=20), "127.0.0.1:9")
        for bad in ("", "garbage", good[:-20]):
            with open(path, "w", encoding="ascii") as f:
                f.write(bad)
            for verb in (*verbs, ("umount", name), ("status", name), ("up", "--name", name, source)):
                sentence(world.rsb(*verb, check_status=125), path, "damaged")
        with open(path, "w", encoding="ascii") as f:
            f.write(good)
        state = world.env["XDG_STATE_HOME"]
        script = f"mount --bind {state} {state}; mount -o remount,ro,bind {state}; exec rsb \"$@\""
        for verb in (*verbs, ("up", "--name", "other", source)):
            sentence(world.run_with_mounts(script, *verb, check_status=125), "Read-only")
        passwd = f"{world.tmp}/passwd"  # else the real home is meant
        with open(passwd, "w", encoding="ascii") as f:
            f.write(f"me:x:{os.getuid()}:{os.getgid()}:::/bin/sh\n")
        nobody = f"mount --bind {passwd} /etc/passwd; exec rsb \"$@\""
        for verb in (*verbs, ("list",), ("trust", "/")):
            r = world.run_with_mounts(nobody, *verb, check_status=125,
                                      env={"HOME": "", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""})
            sentence(r, "HOME is not set", "no home directory")
        check(not os.path.exists(at), "no mount point is left")
        equal(daemons(world), set(), "no daemon is left")


harness.main(globals())
