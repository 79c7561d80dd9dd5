# SPDX-License-Identifier: MIT
"""What is kept of a sandbox here, and what comes back of it when the sandbox is gone."""

import contextlib
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import harness
from harness import answer, check, equal, named, sentence, wait_until

# What a tree is, told by a program in the sandbox: names are bytes, so all of it is hex.
DESCRIBE = """
import hashlib, json, os, stat, sys
found = {}
for folder, dirs, files in os.walk(b"."):
    for name in dirs + files:
        path = os.path.join(folder, name)
        st = os.lstat(path)
        what = [oct(st.st_mode), st.st_nlink if stat.S_ISREG(st.st_mode) else 1]
        if stat.S_ISLNK(st.st_mode):
            what.append(os.readlink(path).hex())
        else:
            what.append(st.st_mtime_ns)
            what.append(sorted((x, os.getxattr(path, x).hex()) for x in os.listxattr(path) if x.startswith("user.")))
        if stat.S_ISREG(st.st_mode):
            what += [st.st_size, st.st_blocks * 512 < st.st_size, hashlib.sha256(open(path, "rb").read()).hexdigest()]
        found[path.hex()] = what
json.dump(found, sys.stdout)
"""

MAKE = """
import os
os.makedirs("deep/er")
for c in range(1, 256):
    if c != ord("/"):
        open(b"deep/n" + bytes([c]) + b"x", "wb").write(bytes([c]))
os.mkdir(b"\\xff\\n")
os.symlink(b"../nowhere\\xfe", b"\\xff\\n/up")
open("one", "w").write("linked"); os.link("one", "deep/two")
with open("sparse", "wb") as f:
    f.truncate(64 << 20); f.seek(32 << 20); f.write(b"x" * 4096)
open("attr", "w").write("a"); os.setxattr("attr", "user.colour", b"\\x00red")
os.mkdir("closed"); open("closed/in", "w").write("i"); os.chmod("closed", 0o500); os.chmod("closed/in", 0o400)
open("big", "wb").write(os.urandom(3 << 20))
os.mkdir("gone"); open("gone/a", "w").write("a"); open("turn", "w").write("file")
os.mkdir("turned"); open("turned/in", "w").write("i"); os.mkfifo("pipe")
open("old", "w").write("o"); os.utime("old", ns=(10**18 + 1, 10**18 + 123456789)); os.mkdir("empty")
"""

CHANGE = """
import os, shutil
shutil.rmtree("gone"); os.unlink("turn"); os.mkdir("turn"); open("turn/in", "w").write("dir")
shutil.rmtree("turned"); open("turned", "w").write("file")
os.link("one", "three"); os.rename("deep/er", "deeper"); open("deeper/new", "w").write("n"); os.chmod("old", 0o640)
"""


def quiet(world, source=None):
    """One of which no snapshot is taken unless we say so."""
    return world.sandbox(source, up=("-o", "sync.interval=off"))


def take(world, box, *args):
    return answer(world.rsb("snapshot", *args, "--json", box.name))


def points(world, box):
    return answer(world.rsb("snapshot", "list", "--json", box.name))["snapshots"]


def describe(world, name):
    r = world.run("rsb-exec", "-s", name, "python3", "-c", DESCRIBE, cwd="/")
    found = json.loads(r.stdout)
    found.pop(b"./pipe".hex(), None)
    return found


def sandboxes(world):
    """Here, and at their host."""
    return (sorted(os.listdir(os.path.join(world.env["XDG_STATE_HOME"], "rsb"))),
            sorted(s["sandboxID"] for s in json.loads(world.api("GET", "/sandboxes"))))


def lose(world, box):
    """The host of the sandbox does not know it any more."""
    world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")


def lose_by_name(world, box):
    with open(box.state("state.json"), encoding="utf-8") as f:
        world.api("DELETE", f"/sandboxes/{json.load(f)['sandbox_id']}")


def restored(box, n):
    """What the daemon says when it has brought it back for the n-th time."""
    def texts():
        return [e["text"] for e in box.events() if e["kind"] == "restored"]
    wait_until(lambda: len(texts()) == n, 120, "the daemon brings it back")
    wait_until(lambda: box.status()["state"] == "live", 30, "it is live")
    return texts()[-1]


def test_a_base_a_delta_and_another_sandbox(world):
    with quiet(world) as box, named(world, "again"), named(world, "before"):
        box.exec("python3", "-c", MAKE)
        first = take(world, box)
        check(first["new"] and first["base"] and not first["fuzzy"], first)
        check(first["moved"] > 3 << 20, "the contents came")
        then = describe(world, box.name)
        again = take(world, box, "take")
        check(not again["new"] and again["snapshot"] == first["snapshot"], "nothing changed")
        box.exec("python3", "-c", CHANGE)
        second = take(world, box)
        check(second["new"] and not second["base"], second)
        check(second["moved"] < 16 << 10, f"{second['moved']} bytes for a small change")
        # gone, gone/a, deep/er, turned/in; turn and turned became something else.
        equal(second["removed"], 4)
        equal([p["snapshot"] for p in points(world, box)], [first["snapshot"], second["snapshot"]])
        for path in pathlib.Path(box.state("")).glob("snapshot*"):
            equal(path.stat().st_mode & 0o777, 0o600, path)
        now = describe(world, box.name)
        sentence(world.rsb("snapshot", "restore", box.name, check_status=125), "is there", "--to NAME")
        r = world.rsb("snapshot", "restore", "--to", "again", box.name)
        check(b"again is restored, lives until " in r.stdout and b", then it ends with all that is in it: see" in r.stdout, r.stdout)
        equal(describe(world, "again"), now, "the tree of the newest one")
        r = world.rsb("snapshot", "restore", f"{box.name}@{first['snapshot']}", "--to", "before")
        check(b" are as they were at " in r.stderr and b"snapshot 1)\n" in r.stderr, r.stderr)  # nothing is lost by it
        equal(describe(world, "before"), then, "the tree of the first one")
        sentence(world.rsb("snapshot", "restore", "--to", "again", box.name, check_status=125), "already")


def test_it_costs_what_changed(world):
    n = harness.how_many(5000, 20000, 100000)
    source = world.fresh("src")
    with quiet(world, source) as box:
        box.exec("python3", "-c", f"""
import os
for i in range({n}):
    if i % 100 == 0:
        os.makedirs(f"d{{i // 1000}}/e{{i // 100}}")
    open(f"d{{i // 1000}}/e{{i // 100}}/f{{i}}", "w").write(str(i))
""")
        first = take(world, box)
        check(first["moved"] > 50 * n, first)
        box.sh("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i > d$((i % 4))/new$i; done; rm d1/e10/f1001; rm -r d0/e0")
        second = take(world, box)
        equal((second["changed"], second["removed"]), (10 + 4 + 1, 102), second)
        check(second["moved"] < 32 << 10, f"{second['moved']} bytes for 10 files of {n}")
        equal(second["files"], first["files"] + 10 - 102)
        print(f"     {n} files: {first['moved']} bytes for all, {second['moved']} for 10 new and 102 gone", flush=True)
        check(not take(world, box)["new"], "nothing changed")
        # Another sidecar does not know the list: it comes whole, and is compared here.
        box.sh("echo 1 > d1/more")
        for pid in harness.sidecars_of(world.local_server()["pid"]):
            os.kill(pid, signal.SIGKILL)
        box.write("after", b"1")  # the mount waits for another one
        third = take(world, box)
        equal((third["base"], third["changed"], third["removed"]), (False, 3, 0), third)
        check(third["moved"] > 50 * n, third)
        now = describe(world, box.name)
        lose(world, box)
        world.rsb("up", "--name", box.name, "-m", box.mount, source)
        equal(describe(world, box.name), now)


def test_what_is_damaged_is_told_and_nothing_is_half_restored(world):
    with quiet(world) as box:
        box.sh("echo 1 > a")
        take(world, box)
        for i in (2, 3, 4):
            box.sh(f"echo {i} > a; echo {i} > b{i}")
            take(world, box)
        delta = pathlib.Path(box.state("snapshot-4.tar.zst"))
        data = bytearray(delta.read_bytes())
        data[len(data) // 2] ^= 1
        delta.write_bytes(data)
        before = sandboxes(world)
        sentence(world.rsb("snapshot", "restore", "--to", "t-x", f"{box.name}@4", check_status=125),
                 "snapshot 4 stands on others: snapshot 4 is damaged: snapshot-4.tar.zst")
        os.unlink(box.state("snapshot-3.tree"))
        sentence(world.rsb("snapshot", "restore", "--to", "t-x", f"{box.name}@3", check_status=125),
                 "snapshot-3.tree", "No such file")
        sentence(world.rsb("snapshot", "restore", "--to", "t-x", f"{box.name}@9", check_status=125),
                 "there is no snapshot 9", "rsb snapshot list")
        equal(sandboxes(world), before, "no sandbox is left")
        # The newest that is whole is taken instead, and told.
        with named(world, "t-x"):
            r = world.rsb("snapshot", "restore", "--to", "t-x", box.name)
            check(b"snapshot 4 stands on others" in r.stderr and b"snapshot 2)" in r.stderr, r.stderr)
            equal(world.run("rsb-exec", "-s", "t-x", "sh", "-c", "cat a; ls", cwd="/").stdout, b"2\na\nb2\n")
        # One that cannot be continued is begun anew.
        box.sh("echo 5 > a")
        check(take(world, box)["base"], "a new base")
        index = pathlib.Path(box.state("snapshots"))
        index.write_bytes(index.read_bytes().replace(b'"base":1', b'"base":0', 1))
        sentence(world.rsb("snapshot", "list", box.name, check_status=125), "is damaged")
        sentence(world.rsb("snapshot", "restore", "--to", "t-x", box.name, check_status=125), "is damaged", "remove --all")
        world.rsb("snapshot", "remove", "--all", box.name)
        equal([p.name for p in pathlib.Path(box.state("")).glob("snapshot-*")], [], "files")
        sentence(world.rsb("snapshot", "restore", "--to", "t-x", box.name, check_status=125), "there is no snapshot of")


def test_old_ones_go(world):
    with quiet(world) as box:
        box.sh("echo 1 > a")
        take(world, box)
        box.sh("echo 2 > a")
        take(world, box)
        one = take(world, box, "--full")
        check(one["new"] and one["base"], one)
        equal([p["snapshot"] for p in points(world, box)], [3], "the ones before are gone")
        equal(sorted(p.name for p in pathlib.Path(box.state("")).glob("snapshot-*")), ["snapshot-3.tar.zst", "snapshot-3.tree"])
        world.rsb("snapshot", "remove", box.name)
        equal(len(points(world, box)), 1, "what the newest stands on stays")
        box.exec("sh", "-c", "head -c 3000000 /dev/urandom > big")
        sentence(world.rsb("snapshot", "-o", "sync.snapshot_max=1M", box.name, check_status=125), "more than 1 MiB",
                 "sync.snapshot_max")
        equal([p["snapshot"] for p in points(world, box)], [3], "what there was stays")
        equal(sorted(p.name for p in pathlib.Path(box.state("")).glob("snapshot-*")), ["snapshot-3.tar.zst", "snapshot-3.tree"])


def test_a_sandbox_that_is_lost_comes_back(world):
    source = world.fresh("src")
    pathlib.Path(source, "here").write_text("h", encoding="utf-8")
    with quiet(world, source) as box:
        box.exec("python3", "-c", MAKE)
        take(world, box)
        box.exec("python3", "-c", CHANGE)
        box.write("by-mount", b"m")
        take(world, box)
        now = describe(world, box.name)
        box.sh("echo late > late")
        key = pathlib.Path(box.state("key")).read_bytes()
        world.rsb("umount", box.name)
        lose_by_name(world, box)
        r = world.rsb("up", "--name", box.name, "-m", box.mount, source)
        sentence(r, "files and directories are back as they were at", "(snapshot 2)", "is lost")
        equal([e["text"] for e in box.events() if e["kind"] == "restored"], [r.stderr.decode().strip().removeprefix("rsb up: ")])
        equal(describe(world, box.name), now)
        equal(box.read("by-mount"), b"m", "the mount has it")
        equal(pathlib.Path(box.state("key")).read_bytes(), key, "its state stayed")
        check(take(world, box)["base"], "the new one has a base of its own")
        equal(len(points(world, box)), 3, "what it came from stays")
        # What changed there since the last sync comes out as ever.
        got = answer(world.rsb("sync", "out", "--json", box.name))
        check("by-mount" in [i["path"] for i in got["comes"]], got["comes"])
        check("here" not in [i["path"] for i in got["comes"] + got["goes"] + got["conflicts"]], "it did not change")
        # And by its daemon, which hears of the loss.
        lose_by_name(world, box)
        check("(snapshot 3)" in restored(box, 2), box.events())
        equal(describe(world, box.name), now)
        # What it cannot do, rsb mount does.
        world.rsb("umount", box.name)
        lose_by_name(world, box)
        sentence(world.rsb("mount", box.name), "are back as they were at", "(snapshot 3)")
        equal(describe(world, box.name), now)
        equal(len(sandboxes(world)[1]), 1, "no other sandbox is left")


def test_who_is_killed_while_he_restores_leaves_all_as_it_was(world):
    with quiet(world) as box:
        box.exec("python3", "-c", MAKE)
        take(world, box)
        now = describe(world, box.name)
        for n in range(harness.how_many(4, 12, 60)):
            world.rsb("umount", box.name, check_status=None)  # or its daemon does it
            lose_by_name(world, box)
            p = subprocess.Popen(["rsb", "up", "--name", box.name, "-m", box.mount, box.source], env=world.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            # Wherever that is: the time that it takes in all is divided evenly.
            time.sleep(0.05 + n * 0.06)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            world.rsb("up", "--name", box.name, "-m", box.mount, box.source)
            equal(describe(world, box.name), now, f"killed the {n}th time")
            equal(len(sandboxes(world)[1]), 1, "no other sandbox is left")


def test_it_is_taken_by_itself(world):
    source = world.fresh("src")
    with world.sandbox(source, up=("-o", "sync.interval=1s")) as box:
        wait_until(lambda: len(points(world, box)) == 1, 120, "a base of what there was")
        before = points(world, box)[0]
        check(before["base"] and before["why"] == "interval", before)
        box.write("by-mount", b"m")
        wait_until(lambda: len(points(world, box)) == 2, 120, "what was written in the mount")
        delta = points(world, box)[1]
        equal((delta["base"], delta["fuzzy"], delta["changed"]), (False, False, 1), delta)
        # Nothing changed since: none is taken, though time passes.
        seen = len(points(world, box))
        p = subprocess.Popen(["rsb-exec", "sh", "-c", "i=0; while [ ! -e end ]; do i=$((i+1)); echo $i > count; sleep .02; done"],
                             cwd=box.mount, env=world.env, stdin=subprocess.DEVNULL)
        wait_until(lambda: len(points(world, box)) >= seen + 2, 120, "while a command runs")
        last = points(world, box)[-1]
        check(last["fuzzy"] and last["why"] == "running", last)
        box.write("end", b"")
        equal(p.wait(), 0)
        wait_until(lambda: not points(world, box)[-1]["fuzzy"], 120, "when the last command has ended")
        check(not box.status()["commands"], "nothing runs")
        now = describe(world, box.name)
        # describe() is a command, too: it changed nothing.
        wait_until(lambda: box.status()["commands"] == 0, 10, "quiet")
        lose(world, box)
        sentence(world.rsb("up", "-o", "sync.interval=off", "--name", box.name, "-m", box.mount, source), "as they were at")
        equal(describe(world, box.name), now)
        equal(box.read("by-mount"), b"m")


def test_lost_at_any_moment(world):
    """What the newest snapshot says is what is there; by the mount alone, in the order in which it was written."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    source = world.fresh("src")
    for n in range(harness.how_many(2, 4, 40)):
        with world.sandbox(source, up=("-o", "sync.interval=1s")) as box:
            wait_until(lambda: points(world, box), 120, "a base")
            end = time.monotonic() + rng.uniform(0.5, 6)
            closed = []  # when each was, by the clock that snapshots are dated by
            while time.monotonic() < end or len(points(world, box)) < 2:
                for _ in range(20):
                    box.write(f"f{len(closed):05}", str(len(closed)).encode() * 50)
                    closed.append(time.time())
            lose_by_name(world, box)
            text = restored(box, 1)
            newest = next(p for p in points(world, box) if f"(snapshot {p['snapshot']}" in text)
            names = sorted(os.listdir(box.mount))
            equal(names, [f"f{i:05}" for i in range(len(names))], f"seed {seed}, round {n}: no gap")
            for i, name in enumerate(names[:-1]):
                equal(box.read(name), str(i).encode() * 50, f"seed {seed}, round {n}: {name}")
            # The last may have been in the middle of being written.
            check((str(len(names) - 1).encode() * 50).startswith(box.read(names[-1])), f"seed {seed}, round {n}")
            taken = datetime.datetime.fromisoformat(newest["taken"].replace("Z", "+00:00")).timestamp()
            # What was closed a second before is in the sandbox: nobody waits longer to send it.
            kept = sum(t < taken - 1 for t in closed)
            check(len(names) >= kept, f"seed {seed}, round {n}: {len(names)} of {kept} are back")


def test_one_is_taken_before_a_pause(world):
    source = world.fresh("src")
    with quiet(world, source) as box:
        box.sh("echo 1 > a")
        world.rsb("down", "--pause", box.name, check_status=None)  # its host may not be able to
        equal([p["why"] for p in points(world, box)], ["pause"])
        lose_by_name(world, box)
        sentence(world.rsb("up", "--name", box.name, "-m", box.mount, source), "(snapshot 1)")
        equal(box.read("a"), b"1\n")
        world.rsb("down", "--pause", "-o", "sync.interval=off", box.name, check_status=None)
        equal(len(points(world, box)), 1, "not when it is off")


def test_none_is_taken_unless_wanted(world):
    source = world.fresh("src")
    with world.sandbox(source, up=("-o", "sync.interval=off")) as box:
        box.sh("echo 1 > a")
        box.write("b", b"2")
        r = world.run("sh", "-c", f"ps -T -p {box.status()['pid']} -o comm", check_status=None)
        check(b"rsb-mount" in r.stdout and b"archivist" not in r.stdout, r.stdout)
        equal(points(world, box), [])
        r = world.rsb("up", "-o", "sync.interval=0", check_status=2)
        sentence(r, "'0' is too short for sync.interval")


if __name__ == "__main__":
    harness.main(globals())
