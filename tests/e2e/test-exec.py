# SPDX-License-Identifier: MIT
"""rsb-exec: as if it ran here."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

import harness
from harness import answer, check, equal, named


def test_it_ran_there(world):
    with world.sandbox() as box:
        facts = box.sh("hostname; cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/pid")
        hostname, boot_id, pid_ns = facts.split()
        check(hostname != os.uname().nodename, "the same host name")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            check(boot_id != f.read().strip(), "the same boot id")
        check(pid_ns != os.readlink("/proc/self/ns/pid"), "the same pid namespace")


def test_arguments_are_bytes(world):
    with world.sandbox() as box:
        words = ["a b", "", "$HOME", "*", "'", '"', "\n", b"\xff\xfe", "--", "-n", "\\"]
        out = box.exec("printf", "%s\\0", *words).stdout
        want = [w if isinstance(w, bytes) else w.encode() for w in words]
        equal(out.split(b"\0")[:-1], want, "argv")


def test_an_argument_of_131071_bytes_arrives_whole(world):
    with world.sandbox() as box:
        out = box.exec("sh", "-c", 'printf %s "$1" | wc -c', "sh", "x" * 131071).stdout
        equal(int(out), 131071, "bytes")


def test_status_and_signal(world):
    with world.sandbox() as box:
        for status in (0, 1, 7, 124, 125, 126, 127, 255):
            box.exec("sh", "-c", f"exit {status}", check_status=status)
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            r = box.exec("sh", "-c", f"kill -{int(sig)} $$", check_status=None)
            equal(r.returncode, -sig, "death by signal")


def test_not_found_and_not_executable(world):
    with world.sandbox() as box:
        r = box.exec("no-such-program", check_status=127)
        equal(r.stderr.decode(), "rsb-exec: fatal: 'no-such-program': command not found in the sandbox\n")
        box.write("plain", b"#!/bin/sh\n")
        r = box.exec("./plain", check_status=126)
        check(r.stderr.startswith(b"rsb-exec: fatal: './plain': Permission denied"), r.stderr)
        r = box.exec("-C", "nowhere", "true", check_status=125)
        check(b"the directory 'nowhere' of the workspace " in r.stderr, r.stderr)


def test_streams_are_separate_and_exact(world):
    with world.sandbox() as box:
        data = os.urandom(3_000_000)
        box.write("data", data)
        r = box.exec("sh", "-c", "cat data; cat data >&2")
        equal(r.stdout, data, "stdout")
        equal(r.stderr, data, "stderr")


def test_stdin_and_its_end(world):
    with world.sandbox() as box:
        data = os.urandom(5_000_000)
        equal(box.exec("cat", input=data).stdout, data, "stdin")
        equal(box.exec("wc", "-c").stdout.split()[0], b"0", "an empty stdin")
        # A command that does not read its input ends all the same.
        box.exec("true", input=data)


def test_a_closed_output_ends_the_command(world):
    with world.sandbox() as box:
        r = world.run("sh", "-c", "rsb-exec yes | head -n 1", cwd=box.mount, timeout=30)
        equal(r.stdout, b"y\n")


def test_output_that_cannot_be_written(world):
    with world.sandbox() as box:
        def there(script, code, err):
            r = world.run("sh", "-c", script, cwd=box.mount, timeout=30, check_status=code)
            equal(r.stderr.decode(), err, script)

        lost = "rsb-exec: lost: the command's output cannot be written: "
        there("rsb-exec echo x >/dev/full", 125, f"{lost}No space left on device\n")
        there("rsb-exec seq 1 1000000 >/dev/full", 125, f"{lost}No space left on device\n")
        there("rsb-exec echo x >&-", 125, f"{lost}Bad file descriptor\n")
        there("rsb-exec sh -c 'echo x >&2; exit 3' 2>&-", 125, "")
        # Closed ones that nobody uses do no harm, nor does an input that cannot be read.
        there("rsb-exec sh -c 'exit 3' >&- 2>&-", 3, "")
        there("rsb-exec cat <&-", 0, "")
        there("rsb-exec cat </", 0, "")
        there("rsb status >&- 2>&-", 0, "")


def test_the_working_directory_is_mapped(world):
    with world.sandbox() as box:
        os.makedirs(box.path("a/b"))
        out = box.exec("pwd", cwd=box.path("a/b")).stdout.decode().strip()
        equal(out, "/home/user/workspace/a/b")
        equal(box.exec("-C", "a", "pwd").stdout.strip(), b"/home/user/workspace/a")
        equal(box.exec("-C", "/tmp", "pwd").stdout.strip(), b"/tmp")
        out = world.run("rsb-exec", "-s", box.name, "pwd", cwd="/").stdout.strip()
        equal(out, b"/home/user/workspace")


def test_the_environment_is_an_allow_list(world):
    with world.sandbox() as box:
        env = {"SECRET_TOKEN": "x", "TERM": "dumb", "MINE": "1 2"}
        out = box.exec("-e", "MINE", "-e", "OWN=a=b", "env", env=env).stdout.decode().split("\n")
        check("TERM=dumb" in out, "TERM is passed on")
        check("MINE=1 2" in out and "OWN=a=b" in out, "what is named is passed on")
        check(not any("SECRET_TOKEN" in line for line in out), "nothing else is")
        check(f"HOME={world.env['HOME']}" not in out, "HOME is the sandbox's")


def test_signals_are_forwarded(world):
    with world.sandbox() as box:
        script = "trap 'echo got; exit 3' TERM INT HUP; echo ready; while :; do sleep 0.05; done"
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Whoever runs the tests may ignore some (nohup does); what is ignored is not forwarded.
            p = subprocess.Popen(["rsb-exec", "sh", "-c", script], cwd=box.mount, env=world.env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 preexec_fn=lambda s=sig: signal.signal(s, signal.SIG_DFL))
            equal(p.stdout.readline(), b"ready\n")
            p.send_signal(sig)
            try:
                equal(p.communicate(timeout=20)[0], b"got\n", sig.name)
            finally:
                p.kill()
            equal(p.returncode, 3, sig.name)


def test_death_of_the_client_ends_the_tree(world):
    with world.sandbox() as box:
        def alive():
            return int(box.sh("cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep$' || :"))

        script = "(setsid sleep 300 &); sleep 300 & echo $$; wait"
        p = subprocess.Popen(["rsb-exec", "sh", "-c", script], cwd=box.mount, env=world.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        p.stdout.readline()
        harness.wait_until(lambda: alive() == 2, 10, "the tree does not start")
        p.kill()
        p.wait()
        harness.wait_until(lambda: alive() == 0, 10, "the tree lives on")


def test_a_background_process_does_not_hold_the_call(world):
    with world.sandbox() as box:
        start = time.monotonic()
        box.exec("sh", "-c", "sleep 60 & echo out")
        check(time.monotonic() - start < 20, "the call was held")
        equal(box.sh("cat /proc/[0-9]*/comm | grep -c '^sleep$'").strip(), "1", "it goes on")
        box.sh("kill $(pidof sleep) || :")


def test_in_the_background_it_leaves_the_terminal_alone(world):
    """Somebody types for another program: who reads then is stopped by the kernel, and so was the command."""
    script = 'rsb-exec sh -c "echo runs; sleep 2; echo done" & wait $!; echo status $?; rsb-exec cat'
    with world.sandbox() as box:
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(box.mount)
            os.execvpe("bash", ["bash", "-m", "-c", script], world.env)
        seen = b""

        def read_until(word):
            nonlocal seen
            while word not in seen:
                check(select.select([terminal], [], [], 30)[0], f"no {word}: {seen}")
                seen += os.read(terminal, 4096)

        read_until(b"runs")
        os.write(terminal, b"typed\n")
        read_until(b"status 0")
        check(b"done" in seen, seen)
        # What was typed meanwhile is for who reads in the foreground.
        seen = b""
        read_until(b"typed\r\n")
        os.write(terminal, b"\4")
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)


def test_down_does_not_wait_for_what_runs(world):
    with world.sandbox() as box:
        box.exec("sh", "-c", "sleep 300 >/dev/null 2>&1 &")
        start = time.monotonic()
        world.rsb("down", "--kill", box.name)
        check(time.monotonic() - start < 20, "it was waited for")


def test_fast_commands_lose_no_byte(world):
    """8 clients at a time."""
    total, n_client = harness.how_many(500, 2_000, 10_000), 8
    loop = 'i=$1; while [ $i -lt $2 ]; do rsb-exec echo line $i || echo status $?; i=$((i+$3)); done'
    with world.sandbox() as box:
        clients = [subprocess.Popen(["sh", "-c", loop, "sh", str(k), str(total), str(n_client)], cwd=box.mount,
                                    env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for k in range(n_client)]
        outputs = [None] * n_client

        def collect(k):
            outputs[k] = clients[k].communicate(timeout=600)

        threads = [threading.Thread(target=collect, args=(k,)) for k in range(n_client)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for k, (out, err) in enumerate(outputs):
            equal(err, b"", f"stderr of client {k}")
            equal(out, b"".join(b"line %d\n" % i for i in range(k, total, n_client)), f"stdout of client {k}")


def test_as_many_as_there_may_be_leave_room_to_end_them(world):
    n = harness.how_many(300, 300, 900)
    with world.sandbox() as box:
        clients = [subprocess.Popen(["rsb-exec", "sh", "-c", "echo runs; exec sleep 1000"], cwd=box.mount, env=world.env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(n)]
        for p in clients:
            equal(p.stdout.readline(), b"runs\n", "each runs")
        equal(box.status()["commands"], n)
        world.rsb("down", "--kill", "--force", "--no-sync", box.name)
        for p in clients:
            equal(p.wait(timeout=60), 125)


def test_the_daemon_ends_in_order_with_commands(world):
    for gone in (False, True):
        with world.sandbox() as box:
            p = subprocess.Popen(["rsb-exec", "sh", "-c", "echo runs; exec sleep 1000"], cwd=box.mount, env=world.env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            equal(p.stdout.readline(), b"runs\n", "it runs")
            if gone:
                world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
                equal(p.wait(timeout=60), 125)
            box.end()
        equal(p.wait(timeout=60), 125)


def test_no_daemon_stays_for_commands_of_a_sandbox_that_is_gone(world):
    def daemons():
        return {p for p, c in harness.processes_of(world.env["XDG_STATE_HOME"]) if "rsb-mount" in c}

    with named(world, "gone") as name:
        world.rsb("create", name)
        p = subprocess.Popen(["rsb-exec", "-o", "exec.linger=1s", "-s", name, "sh", "-c", "echo runs; exec sleep 300"],
                             env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(p.stdout.readline(), b"runs\n")
        world.api("DELETE", f"/sandboxes/{answer(world.rsb('status', '--json', name))['sandbox']}")
        equal((p.communicate(timeout=60)[0], p.returncode), (b"", 125))
        harness.wait_until(lambda: not daemons(), 20, "it ends by itself")


def test_two_hundred_at_once(world):
    with world.sandbox() as box:
        clients = [subprocess.Popen(["rsb-exec", "sh", "-c", f"echo {i}; echo e{i} >&2; exit {i % 100}"],
                                    cwd=box.mount, env=world.env, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(200)]
        for i, p in enumerate(clients):
            out, err = p.communicate(timeout=120)
            equal((p.returncode, out, err), (i % 100, b"%d\n" % i, b"e%d\n" % i), f"command {i}")


def test_what_is_left_running_leaves_room(world):
    """1,024 commands fit; the last 16 places are for those that leave nothing."""
    n = harness.how_many(0, 0, 126)
    if not n:
        return
    loop = 'for i in $(seq $1); do rsb-exec sh -c "sleep 1000 & :" || exit; done'
    with world.sandbox() as box:
        clients = [subprocess.Popen(["sh", "-c", loop, "sh", str(n)], cwd=box.mount, env=world.env,
                                    stdin=subprocess.DEVNULL) for _ in range(8)]
        for p in clients:
            equal(p.wait(timeout=300), 0, "status")
        equal(box.sh("pgrep -c '^sleep$'").strip(), str(8 * n), "left running")
        box.exec("sh", "-c", "sleep 1000 & echo $! >pid")
        r = box.exec("sh", "-c", 'while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.1; done')
        equal(r.stderr, b"rsb-exec: note: lost: what the command sh -c sleep 1000 & echo $! >pid had left running was ended: "
                        b"1008 others have left something running\n", "the notice")
        box.exec("pkill", "-x", "sleep")


@contextlib.contextmanager
def ended_unread(world, script, who):
    """A command whose end is known here, while nobody has read its output; then who ("sidecar", "daemon", "sandbox") was killed."""
    with world.sandbox() as box:
        with subprocess.Popen(["rsb-exec", "-n", "sh", "-c", f"echo began >began; {script}"], cwd=box.mount, env=world.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            try:
                harness.wait_until(lambda: os.path.exists(box.path("began")), 20, "it begins")
                harness.wait_until(lambda: not box.status()["commands"], 20, "it ends")
                # Their ends are told behind its own, and behind what of its output there is room for.
                for _ in range(3):
                    box.exec("true")
                check(p.poll() is None, "nobody has read what it wrote")
                if who == "sandbox":
                    pids = []
                    world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
                elif who == "daemon":
                    pids = [box.status()["pid"]]
                else:
                    pids = harness.sidecars_of(world.local_server()["pid"])
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                met = {"sidecar": "restarted", "daemon": "crashed", "sandbox": "lost"}[who]
                harness.wait_until(lambda: any(e["kind"] == met for e in box.events()), 30, "it is met")
                check(p.poll() is None, "it waits for who reads")
                yield p
            finally:
                p.kill()


def cut(p, end, there=0):
    """Output is missing, which is said; the whole of it has there bytes."""
    out, err = p.communicate(timeout=60)
    equal(p.returncode, 125, f"status, with {len(out)} bytes and {err[-300:]}")
    zeros = err[:err.rfind(b"\0") + 1]
    line = err[len(zeros):]
    m = re.fullmatch(rb"rsb-exec: lost: only (\d+) of (\d+) bytes of the command's output came; "
                     rb"the command itself had ended (.*)\n", line)
    check(m, line)
    equal(int(m[2]), there, "bytes there were")
    equal(len(out) + len(zeros), int(m[1]), "bytes that came")
    check(65536 < int(m[1]) < there, m[1])
    equal(m[3], end)
    return out, zeros


def test_output_that_is_lost_after_the_end_is_no_success(world):
    for who in ("sidecar", "daemon", "sandbox"):
        with ended_unread(world, "head -c 1000000 /dev/zero", who) as p:
            cut(p, b"with status 0", 1_000_000)
        with ended_unread(world, "head -c 1000 /dev/zero; head -c 1000000 /dev/zero >&2; kill -9 $$", who) as p:
            out, _ = cut(p, b"by signal 9", 1_001_000)
            equal(len(out), 1000)


def test_output_that_came_before_a_loss_is_written(world):
    # As much as has room on the way: the pipe, the window of this end, that of the daemon.
    for who, size in (("daemon", 200_000), ("sidecar", 400_000), ("sandbox", 400_000)):
        for script, status in (("exit 3", 3), ("kill -9 $$", -9)):
            with ended_unread(world, f"head -c {size} /dev/zero; echo e >&2; {script}", who) as p:
                out, err = p.communicate(timeout=60)
                equal((p.returncode, len(out), err), (status, size, b"e\n"), f"{who}, {script}")


def test_a_reader_that_goes_misses_nothing_of_a_loss(world):
    with ended_unread(world, "head -c 1000000 /dev/zero; exit 3", "daemon") as p:
        p.stdout.close()
        equal((p.stderr.read(), p.wait(timeout=60)), (b"", 3))


def test_output_of_a_command_that_is_lost_is_written(world):
    """It had not ended: what came of it is worth as much."""
    with world.sandbox() as box:
        with subprocess.Popen(["rsb-exec", "-n", "sh", "-c", "head -c 200000 /dev/zero; echo began >began; exec sleep 1000"],
                              cwd=box.mount, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            harness.wait_until(lambda: os.path.exists(box.path("began")), 20, "it begins")
            box.exec("true")
            os.kill(box.status()["pid"], signal.SIGKILL)
            box.exec("true")
            out, err = p.communicate(timeout=60)
            equal((p.returncode, len(out)), (125, 200_000), err)
            check(err.startswith(b"rsb-exec: lost: the command was started, but not seen to its end"), err)


def cpu_seconds(marker):
    """Of each of our programs on this side, and of the sandbox's: they are children of this world's rsb-local."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = {}
    for pid, command in harness.processes_of(marker):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        used[(pid, command)] = (int(fields[11]) + int(fields[12])) / ticks
    return used


def test_nobody_works_while_nothing_happens(world):
    with world.sandbox() as box:
        equal(box.sh("echo up"), "up\n")
        time.sleep(1)
        before = cpu_seconds(world.env["XDG_STATE_HOME"])
        sidecar = "cat /proc/[0-9]*/stat | grep rsb-sidecar | cut -d' ' -f14,15"
        far_before = sum(map(int, box.sh(sidecar).split()))
        time.sleep(5)
        after = cpu_seconds(world.env["XDG_STATE_HOME"])
        far_after = sum(map(int, box.sh(sidecar).split()))
        for key, seconds in after.items():
            used = seconds - before.get(key, 0)
            check(used <= 0.1, f"{key} used {used:.2f} s of 5")
        check(far_after - far_before <= 10, f"the sidecar used {far_after - far_before} ticks in 5 s")


def test_order_holds_between_edit_and_build(world):
    """Edit here and build there, command there and read here, without a wait."""
    rounds = harness.how_many(50, 200, 1_000)
    with world.sandbox() as box:
        os.mkdir(box.path("d"))
        for i in range(rounds):
            box.write("in", b"%d" % i * (1 + i % 50))
            want = box.read("in")
            got = box.exec("sh", "-c", "cat in; cp in out; rm -f d/old; mv d/new d/old 2>/dev/null; "
                           f"echo {i} >d/new; ln -sf x{i} link").stdout
            equal(got, want, f"round {i}: the command sees the edit")
            equal(box.read("out"), want, f"round {i}: the edit's copy is seen here")
            equal(box.read("d/new"), b"%d\n" % i, f"round {i}: a new file is seen here")
            equal(os.readlink(box.path("link")), f"x{i}", f"round {i}: a new link")
            if i:
                equal(box.read("d/old"), b"%d\n" % (i - 1), f"round {i}: a rename is seen here")


harness.main(globals())
