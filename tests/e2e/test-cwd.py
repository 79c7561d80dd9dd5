# SPDX-License-Identifier: MIT
"""A program in a subdirectory of the mount can always be told where it is, whatever commands begin and end meanwhile."""

import contextlib
import os
import signal
import subprocess
import sys

import harness
import mount_ops
import mountbox
from mountbox import box, wait_until

DEEP = "/top/middle/deep"

# Says each thing that went wrong once; ends with its stdin.
SIT = """
import os, sys, threading, time
said = set()
done = False
def until_end():
    global done
    sys.stdin.read()
    done = True
threading.Thread(target=until_end).start()
print("ready", flush=True)
want = os.getcwd()
n = 0
while not done:
    n += 1
    time.sleep(0.0005)
    try:
        assert os.getcwd() == want
    except (OSError, AssertionError) as e:
        said.add(repr(e))
assert n > 1, n
print(*said, sep="\\n", end="")
"""

WALK = """
import os, sys, threading, time
done = False
def until_end():
    global done
    sys.stdin.read()
    done = True
threading.Thread(target=until_end).start()
print("ready", flush=True)
said = set()
n = 0
while not done:
    n += 1
    time.sleep(0.0005)
    try:
        os.stat(sys.argv[1] + "/file")
        os.listdir(sys.argv[1] + "/..")
        os.path.exists(sys.argv[1] + "/absent%d" % (n % 7))
    except OSError as e:
        said.add(repr(e))
print(*said, sep="\\n", end="")
"""


@contextlib.contextmanager
def running(script, *args, cwd=None):
    """What it says in the end has to be nothing."""
    p = subprocess.Popen([sys.executable, "-c", script, *args], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"ready\n"
        yield p
        out = p.communicate(timeout=60)[0].decode()
        assert p.returncode == 0 and out == "", (script.split("\n", 2)[1], cwd, out)
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()


@contextlib.contextmanager
def people(b):
    """In every directory of DEEP somebody sits, and one walks by."""
    os.makedirs(b.mount + DEEP)
    mount_ops.put(b.mount + DEEP + "/file", b"x")
    with contextlib.ExitStack() as stack:
        for i in range(1, 4):
            stack.enter_context(running(SIT, cwd=b.mount + "/".join(DEEP.split("/")[:i + 1])))
        stack.enter_context(running(WALK, b.mount + DEEP))
        yield


def command_after_command(tmp, *options):
    with box(tmp, *options) as b, people(b):
        for i in range(harness.how_many(100, 100, 1_000)):
            mount_ops.put(b.mount + DEEP + "/file", b"%d" % i)
            assert b.command("sh", "-c", f"cat .{DEEP}/file; echo there > .{DEEP}/there{i % 3}") == b"%d" % i
            assert mount_ops.get(b.mount + DEEP + f"/there{i % 3}") == b"there\n"


def test_commands_begin_and_end(tmp):
    command_after_command(tmp)


def test_the_same_on_a_kernel_before_6_2(tmp):
    command_after_command(tmp, "noexpire")


def directories_come_and_go(tmp, *options):
    """A name that the kernel knew as absent, or as a file's, is a directory's now."""
    with box(tmp, *options) as b, people(b):
        for i in range(harness.how_many(8, 30, 300)):
            new, other = f"{b.mount}{DEEP}/new{i}", f"{b.mount}/other{i}"
            assert not os.path.exists(new) and not os.path.exists(other)
            mount_ops.put(new, b"file")
            os.unlink(new)
            os.mkdir(new)
            with running(SIT, cwd=new):
                b.command()
                os.stat(new)
                b.command()
            with running("import os\nprint('ready', flush=True)\ninput()\nos.getcwd()\n", cwd=new) as sits:
                os.rename(new, other)
                b.command()
                b.command("mv", f"other{i}", f"top/back{i}")
                assert os.stat(f"{b.mount}/top/back{i}").st_nlink
                b.command()
                sits.stdin.write(b"\n")


def test_directories_come_and_go(tmp):
    directories_come_and_go(tmp)


def test_they_come_and_go_on_a_kernel_before_6_2(tmp):
    directories_come_and_go(tmp, "noexpire")


def test_a_notifier_that_is_killed(tmp):
    """Rare enough that the directories may be unknown for a moment: after it they are not."""
    with box(tmp) as b:
        os.makedirs(b.mount + DEEP)
        notifier = b.processes()[1]
        os.kill(notifier, signal.SIGKILL)
        wait_until(lambda: mountbox.children(b.supervisor.pid).get("rsb-notify", notifier) != notifier, "a new notifier")
        b.command()
        os.stat(b.mount + DEEP)
        with running(SIT, cwd=b.mount + DEEP):
            for _ in range(20):
                b.command()
                os.stat(b.mount + DEEP)


mountbox.main(globals())
