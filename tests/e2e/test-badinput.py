# SPDX-License-Identifier: MIT
"""Bad input: one clear sentence, the right exit code, nothing left behind (the harness looks after each)."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import check, equal, sentence


def test_no_sandbox(world):
    empty = world.fresh()
    sentence(world.run("rsb-exec", "true", cwd=empty, check_status=125), "rsb-exec: fatal: ")
    sentence(world.run("rsb-exec", "-s", "nobody", "true", check_status=125), "nobody")
    sentence(world.rsb("mount", "nobody", empty, check_status=125), "nobody")
    sentence(world.rsb("status", "nobody", check_status=125), "nobody")
    sentence(world.rsb("destroy", "nobody", check_status=125), "nobody")
    sentence(world.run("rsb-mount", "nobody", empty, check_status=1), "nobody")
    for word in "crashes=1001", "crashes=", "crashes=-1", "crashes=1x":
        sentence(world.run("rsb-mount", "-o", word, "nobody", empty, check_status=2), "crashes is a number up to 1000")


def test_usage(world):
    sentence(world.rsb("no-verb", check_status=2), "no-verb")
    sentence(world.rsb("up", "--no-option", check_status=2), "rsb up --help")
    sentence(world.rsb("up", "a", "b", check_status=2), "one directory")
    sentence(world.run("rsb-exec", check_status=125), "no command")
    sentence(world.run("rsb-exec", "--no-option", check_status=125), "rsb-exec: fatal: ")
    sentence(world.rsb("up", "-o", "sandbox.no_key=1", world.fresh(), check_status=2), "no_key")
    for ttl in ("14s", "1ms"):
        sentence(world.rsb("up", "-o", f"sandbox.ttl={ttl}", world.fresh(), check_status=2), f"'{ttl}' is too short", "15s")
    for ttl in ("15s", "0"):
        world.rsb("list", "-o", f"sandbox.ttl={ttl}")
    sentence(world.rsb("list", "-o", "nonsense", check_status=2), "nonsense")
    sentence(world.rsb("down", "-o", "exec.grace=soon", "nobody", check_status=2), "soon", "rsb down --help")
    sentence(world.rsb("up", "--name", "a/b", world.fresh(), check_status=2), "a name has")
    sentence(world.rsb("create", ".x", check_status=2), "a name has")


def test_list_of_what_is_damaged(world):
    world.rsb("create", "whole")
    state = f"{world.env['XDG_STATE_HOME']}/rsb"
    os.mkdir(f"{state}/damaged")
    with open(f"{state}/damaged/state.json", "w", encoding="ascii") as f:
        f.write("{")
    r = world.rsb("list", check_status=125)
    sentence(r, f"{state}/damaged/state.json")
    check(b"whole " in r.stdout and b"running" in r.stdout, r.stdout)
    shutil.rmtree(f"{state}/damaged")
    path = f"{world.env['XDG_CONFIG_HOME']}/rsb"
    os.makedirs(path, exist_ok=True)
    with open(f"{path}/config", "w", encoding="ascii") as f:
        f.write("[no section\n")
    r = world.rsb("list", check_status=125)
    sentence(r, f"{path}/config")
    check(b"unknown" in r.stdout, r.stdout)
    os.unlink(f"{path}/config")
    world.rsb("list")
    world.rsb("destroy", "whole")


def test_a_full_state_disk(world):
    state = world.fresh("full")
    script = """mount -t tmpfs -o size=64k,nr_inodes=100 none "$1"
        mkdir "$1/rsb"
        cat /dev/zero >"$1/filler" 2>/dev/null || shift
        exec rsb "$@\""""
    r = world.run_with_mounts(script, state, "create", "nospace", check_status=125, env={"XDG_STATE_HOME": state})
    sentence(r, f"{state}/rsb/", "No space left")
    os.rmdir(state)


def test_options_are_written_out(world):
    sentence(world.rsb("down", "--kil", "nobody", check_status=2), "unknown option '--kil'", "rsb down --help")
    sentence(world.rsb("up", "--nam", "x", world.fresh(), check_status=2), "unknown option '--nam'")
    sentence(world.rsb("up", "--nam=x", world.fresh(), check_status=2), "unknown option '--nam'")
    sentence(world.rsb("up", "-qz", check_status=2), "unknown option '-z'")
    sentence(world.rsb("up", "--name", check_status=2), "option '--name' needs an argument")
    sentence(world.rsb("up", "-q", "-m", check_status=2), "option '-m' needs an argument")
    sentence(world.rsb("up", "--quiet=x", check_status=2), "option '--quiet' takes no argument")
    sentence(world.run("rsb-exec", "-z", "true", check_status=125), "unknown option '-z'")
    sentence(world.run("rsb-mount", "-fx", "a", "b", check_status=2), "unknown option '-x'")
    sentence(world.run("rsb-exec", "--sand", "nobody", "true", check_status=125), "rsb-exec: fatal: ", "unknown option '--sand'")
    sentence(world.run("rsb-mount", "--unmoun", "/", check_status=2), "unknown option '--unmoun'")
    check(b"unknown option '--vers'" in world.run("rsb-local", "--vers", check_status=2).stderr)
    check(b"unknown option '--vers'" in world.run(world.sidecar_program(), "--vers", check_status=None).stderr)
    for program in "rsb-exec", "rsb-mount", "rsb-local":
        world.run(program, "--version")
    sentence(world.rsb("down", "--kill", "nobody", check_status=125), "nobody")


def test_a_directory_that_is_none(world):
    tmp = world.fresh()
    sentence(world.rsb("up", f"{tmp}/absent", check_status=125), "absent", "No such file")
    with open(f"{tmp}/file", "w", encoding="ascii"):
        pass
    sentence(world.rsb("up", f"{tmp}/file", check_status=125), "not a directory")
    sentence(world.rsb("up", "/", check_status=125), "root directory")


def test_mount_points(world):
    source = world.fresh("src")
    full = world.fresh()
    with open(f"{full}/file", "w", encoding="ascii"):
        pass
    sentence(world.rsb("up", "--name", "bad1", "-m", full, source, check_status=125), full, "not empty")
    sentence(world.rsb("up", "--name", "bad2", "-m", f"{full}/file", source, check_status=125),
             "not a directory")
    sentence(world.rsb("up", "--name", "bad3", "-m", f"{full}/no/such", source, check_status=125), "/no/such")
    with world.sandbox() as box:
        sentence(world.rsb("mount", box.name, full, check_status=125), "mounted already", box.mount)
        sentence(world.rsb("up", "--name", "bad4", "-m", box.mount, source, check_status=125), box.mount)
        inside = box.path("x")
        sentence(world.rsb("up", "--name", "bad5", "-m", inside, source, check_status=125), inside, "in the mount of a sandbox")
        equal(os.listdir(box.mount), [])
        sentence(world.rsb("up", "--name", box.name, source, check_status=125), "taken")
        sentence(world.rsb("up", "--name", box.name, "-m", full, box.source, check_status=125), "up already")


def test_no_dev_fuse(world):
    """A machine without the device, and one whose device cannot be used, as mount namespaces."""
    source = world.fresh("src")
    dev = world.dir("dev")
    keep = ("null", "zero", "full", "random", "urandom", "tty")
    script = "".join(f"touch {dev}/{n}; mount --bind /dev/{n} {dev}/{n}; " for n in keep)
    up = 'exec rsb up --name nofuse -m "$1" "$2"'
    # A server of there would hold those mounts.
    with world.own_server():
        for prepare, words in ((f"{script} mount --rbind {dev} /dev", ("/dev/fuse is not there", "'modprobe fuse'", "--device")),
                               ("mount --bind /dev/null /dev/fuse", ("/dev/fuse is another thing",))):
            r = world.run_with_mounts(f"{prepare}; {up}", f"{world.tmp}/mnt-nofuse", source, check_status=125)
            sentence(r, *words)
            check(not os.path.exists(f"{world.tmp}/mnt-nofuse"), "the mount point is removed")
            r = world.run_with_mounts(f"{prepare}; exec rsb doctor --json", check_status=1)
            how = {c["what"]: c["how"] for c in harness.answer(r)["checks"] if not c["ok"]}
            check(all(w in how["/dev/fuse"] for w in words), how)
    shutil.rmtree(dev)


def test_mount_program(world):
    """rsb-mount NAME DIR: 1 for whatever does not work, 2 for what makes no sense."""
    empty = world.fresh()
    full = world.fresh()
    with open(f"{full}/file", "w", encoding="ascii"):
        pass
    sentence(world.run("rsb-mount", "nobody", empty, check_status=1), "rsb-mount: ", "nobody")
    with world.sandbox() as box:
        sentence(world.run("rsb-mount", box.name, empty, check_status=1), "rsb-mount: ", box.name)
        world.rsb("umount", box.name)
        sentence(world.run("rsb-mount", box.name, full, check_status=1), full, "not empty")
        sentence(world.run("rsb-mount", box.name, f"{full}/file", check_status=1), "not a directory")
        sentence(world.run("rsb-mount", box.name, f"{full}/absent", check_status=1), "does not exist")
        sentence(world.run("rsb-mount", box.name, "/proc", check_status=1), "/proc", "mount point of 'proc' already")
        sentence(world.run("rsb-mount", box.name, check_status=2), "rsb-mount: ")
        sentence(world.run("rsb-mount", "-o", "no_such", box.name, empty, check_status=2), "no_such")
        world.run("rsb-mount", box.name, empty)
        check(os.path.ismount(empty), "it is mounted")
        world.run("rsb-mount", "-u", empty)
        check(not os.path.ismount(empty), "it is not mounted any more")
        for place in empty, "/proc":
            sentence(world.run("rsb-mount", "-u", place, check_status=1), "no sandbox is mounted", place)
    os.rmdir(empty)


def test_wrong_key(world):
    with world.sandbox() as box:
        box.write("file", b"kept")
        world.rsb("umount", box.name)
        with open(box.state("key"), "rb") as f:
            old = f.read()
        # One that is none: nothing is begun with it.
        with open(box.state("key"), "wb") as f:
            f.write(b"no key")
        sentence(world.rsb("mount", box.name, box.mount, check_status=125), "key", os.path.dirname(box.state("key")))
        # Another one: the sandbox is ours all the same, so it gets a sidecar with this key.
        with open(box.state("key"), "wb") as f:
            f.write(old.translate(bytes.maketrans(b"0123456789abcdef", b"123456789abcdef0")))
        world.rsb("mount", box.name, box.mount)
        equal(box.sh("cat file"), "kept")
        told = [e["text"] for e in box.events() if e["kind"] == "restarting"]
        equal(len(told), 1, "it is told once")
        check("the key was refused" in told[0], told)
        # The old one fits no more.
        world.rsb("umount", box.name)


@contextlib.contextmanager
def in_place_of_the_daemon(box):
    """A listener, and the path at which the daemon can be reached meanwhile."""
    path = box.state("socket")
    os.rename(path, path + ".real")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        yield listener, path + ".real"
    if os.path.exists(path + ".real"):
        os.rename(path + ".real", path)


def test_daemon_gone_at_the_first_word(world):
    with world.sandbox() as box, in_place_of_the_daemon(box) as (listener, real):
        p = subprocess.Popen(["rsb-exec", "echo", "ran"], cwd=box.mount, env=world.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        client, _ = listener.accept()
        client.recv(1 << 16)
        # The one that comes after it is asked.
        os.rename(real, box.state("socket"))
        client.close()
        equal((*p.communicate(timeout=60), p.returncode), (b"ran\n", b"", 0))


def test_another_version(world):
    """A daemon from before an update answers a program from after it."""
    with world.sandbox() as box, in_place_of_the_daemon(box) as (listener, real):
        def pass_on():
            client, _ = listener.accept()
            daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            daemon.connect(real)
            # The hash of the table of operations ends the request.
            hello = bytearray(client.recv(1 << 16))
            hello[-1] ^= 1
            daemon.send(hello)
            client.send(daemon.recv(1 << 16))
            client.recv(1)
            client.close()
            daemon.close()

        other = threading.Thread(target=pass_on)
        other.start()
        r = box.exec("true", check_status=125)
        other.join()
        os.rename(real, box.state("socket"))
        sentence(r, "rsb-exec: fatal: ", "another version", "rsb umount")
        equal(box.sh("echo again"), "again\n")


def test_port_taken(world):
    source = world.fresh("src")
    # envd's own port is always taken in a sandbox.
    r = world.rsb("up", "--name", "taken", "-m", f"{world.tmp}/mnt-taken", "-o", "sandbox.port=49983", source,
                  check_status=125)
    sentence(r, "49983")
    check(not os.path.exists(f"{world.tmp}/mnt-taken"), "the mount point is removed")


def test_sandbox_killed_behind_our_back(world):
    with world.sandbox() as box:
        with open(box.path("file"), "wb") as f:
            p = subprocess.Popen(["rsb-exec", "sh", "-c", "echo runs; sleep 300"], cwd=box.mount, env=world.env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            equal(p.stdout.readline(), b"runs\n")
            f.write(b"x")
            f.flush()
            world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
            equal(p.wait(timeout=20), 125)
            sentence(subprocess.CompletedProcess([], 125, b"", p.stderr.read()), "rsb-exec: lost: ")
            start = time.monotonic()
            for operation in (lambda: os.listdir(box.mount), lambda: os.stat(box.path("file")),
                              lambda: os.fsync(f.fileno())):
                try:
                    operation()
                    check(False, "the mount does not fail")
                except OSError as e:
                    equal(e.strerror, "Input/output error")
            check(time.monotonic() - start < 2, "the mount hangs")
            # What was lost has been told by fsync.
            with contextlib.suppress(OSError):
                f.close()
        sentence(box.exec("true", cwd="/", check_status=125, env={"RSB_SANDBOX": box.name}),
                 "rsb-exec: fatal: ", box.name, "rsb destroy")
        equal(box.status()["state"], "lost")
        # What is here can be brought in again; that the rest is lost is told.
        start = time.monotonic()
        r = world.rsb("up", "--name", box.name, "-m", box.mount, box.source)
        check(time.monotonic() - start < 20, "nothing is waited for that cannot come")
        sentence(r, "gone with what was in it", box.name)
        equal(os.listdir(box.mount), [], "another sandbox")
        world.rsb("destroy", box.name)
        equal(world.leftovers(), [], "left behind")


def test_disk_full(world):
    with world.own_server("--disk", "256M"):
        with world.sandbox() as box:
            free = os.statvfs(box.mount)
            check(free.f_bavail * free.f_frsize < 1 << 28, "the disk is larger than it should be")
            box.sh("dd if=/dev/zero of=fill bs=1M count=400 2>/dev/null; exit 0")
            try:
                with open(box.path("more"), "wb") as f:
                    f.write(b"x" * 5_000_000)
                check(False, "a write into a full disk succeeds")
            except OSError as e:
                equal(e.strerror, "No space left on device")
            os.unlink(box.path("fill"))
            box.write("more", b"x" * 1000)
            equal(box.sh("wc -c <more").strip(), "1000")
        # A tree that does not fit is refused, and its sandbox does not stay.
        source = world.fresh("src")
        block = os.urandom(1 << 20)
        with open(f"{source}/large", "wb") as f:
            for _ in range(300):
                f.write(block)
        sentence(world.rsb("up", "--name", "full", "-m", f"{world.tmp}/mnt-full", source, check_status=125),
                 "'large'", "No space left")
        os.unlink(f"{source}/large")


def test_a_line_of_300_mb(world):
    with world.sandbox() as box:
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "head -c 300000000 /dev/zero | tr '\\0' x"],
                             cwd=box.mount, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        n = 0
        while chunk := p.stdout.read(1 << 20):
            n += len(chunk)
        equal((n, p.wait()), (300_000_000, 0))


def test_an_argument_that_is_too_long(world):
    with world.sandbox() as box:
        box.exec("true", "x" * 131071)
        # The local exec refuses one byte more before rsb-exec starts; -c takes it from there.
        try:
            box.exec("true", "x" * 131072)
            check(False, "E2BIG")
        except OSError as e:
            equal(e.strerror, "Argument list too long")


def test_fifos_and_sockets_in_the_tree(world):
    source = world.fresh("src")
    os.mkfifo(f"{source}/fifo")
    s = socket.socket(socket.AF_UNIX)
    s.bind(f"{source}/sock")
    with open(f"{source}/plain", "w", encoding="ascii") as f:
        f.write("plain\n")
    name = "fifos"
    mount = f"{world.tmp}/mnt-fifos"
    r = world.rsb("up", "--name", name, "-m", mount, source, timeout=60)
    text = r.stderr.decode()
    check("fifo" in text and "sock" in text, f"what was left out is named: {text!r}")
    equal(os.listdir(mount), ["plain"])
    world.run("rsb-exec", "mkfifo", "there", cwd=mount)
    check(harness.os.path.exists(f"{mount}/there"), "a FIFO made there is seen")
    # Readers of a FIFO must not hold up anything else.
    readers = [subprocess.Popen(["timeout", "3", "cat", f"{mount}/there"], stdout=subprocess.DEVNULL)
               for _ in range(4)]
    start = time.monotonic()
    with open(f"{mount}/plain", "rb") as f:
        equal(f.read(), b"plain\n")
    check(time.monotonic() - start < 2, "a FIFO held up a read")
    for p in readers:
        p.wait()
    s.close()
    world.rsb("down", "--kill", name)
    check(not os.path.exists(mount), "the mount point stays")


def test_links_do_not_lead_out_by_another_name(world):
    with open(f"{world.tmp}/outside", "w", encoding="ascii") as f:
        f.write("not the sandbox's\n")
    with world.sandbox() as box:
        box.sh("mkdir -p a/b/d && ln -s ../../../outside a/b/d/l && ln -s ../../outside a/b/l && ln a/b/l hard && "
               "mkdir c && ln -s ../outside c/l && ln c/l hard1")

        def refused(name, **kw):
            try:
                os.readlink(name, **kw)
            except OSError as e:
                equal(e.strerror, "Permission denied", name)
                return
            check(False, f"{name} is refused")

        # Once each was seen where its target is inside, its other name must not profit from that.
        for _ in range(3):
            for deep, shallow in (("a/b/l", "hard"), ("c/l", "hard1")):
                with contextlib.suppress(OSError):
                    os.readlink(box.path(deep))
                refused(box.path(shallow))
                check(not os.path.exists(box.path(shallow)), "nothing outside is reached")
        # A directory that the host moves up while commands run takes its links along.
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "echo go; read x"], cwd=box.mount, env=world.env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"go\n")
        equal(os.readlink(box.path("a/b/d/l")), "../../../outside")
        d = os.open(box.path("a/b/d"), os.O_RDONLY | os.O_DIRECTORY)
        os.rename(box.path("a/b/d"), box.path("d"))
        refused("l", dir_fd=d)
        os.close(d)
        p.communicate(b"\n")


def test_the_daemon_killed(world):
    with world.sandbox() as box:
        pid = box.status()["pid"]
        os.kill(pid, signal.SIGKILL)
        equal(box.sh("echo another"), "another\n")
        pid = box.status()["pid"]
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            supervisor = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        harness.wait_until(lambda: not os.path.exists(box.mount), 10, "the dead mount is cleared away, and its mount point")
        os.mkdir(box.mount)
        sentence(box.exec("true", check_status=125), "not mounted", "rsb mount")
        # By name it takes no mount.
        equal(box.exec("echo", "bare", cwd="/", env={"RSB_SANDBOX": box.name}).stdout, b"bare\n")
        world.rsb("mount", box.name, box.mount)
        equal(box.sh("echo again"), "again\n")


harness.main(globals())
