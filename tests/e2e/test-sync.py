# SPDX-License-Identifier: MIT
"""A directory and the sandbox that it went into, changed on both sides."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import harness
from harness import check, equal
from twosides import paths, project, put, sync, tree


def test_round_trip_with_edits_on_both_sides(world):
    with project(world, keep="k", there="old", here="old", gone__a="1", gone__b="2", turn="file") as box:
        src = pathlib.Path(box.source)
        put(src, here="mine", fresh_here="f")
        box.sh("echo -n theirs > there; mkdir -p new/deep; echo -n n > new/deep/file; chmod 755 new/deep/file;"
               "rm -r gone; ln -s file new/deep/link; rm turn; mkdir turn; echo -n x > turn/inside;"
               "touch -d @1000000000.123456789 new/deep/file")
        before = tree(src)
        r = world.rsb("sync", "out", "--dry-run", box.name)
        equal(tree(src), before, "a dry run changes nothing")
        check(b"comes: new/deep/file" in r.stdout and b"goes: gone/a" in r.stdout, r.stdout)
        answer = sync(world, box, "out")
        equal(paths(answer, "comes"), ["new", "new/deep", "new/deep/file", "new/deep/link", "there", "turn", "turn/inside"])
        equal(paths(answer, "goes"), ["gone", "gone/a", "gone/b"])
        equal(paths(answer, "stays"), ["fresh_here", "here"])
        equal((src / "there").read_text(), "theirs")
        equal((src / "here").read_text(), "mine")
        check(not (src / "gone").exists(), "what is gone there is gone here")
        equal(os.readlink(src / "new/deep/link"), "file")
        equal((src / "turn/inside").read_text(), "x")
        st = (src / "new/deep/file").stat()
        equal((st.st_mode & 0o777, st.st_mtime_ns), (0o755, 1000000000123456789))
        check(not (src / ".rsb").exists(), "the stage is gone")
        # Once more there is nothing to do, and no file is sent.
        answer = sync(world, box, "out")
        equal([len(answer[k]) for k in ("comes", "goes", "conflicts", "held")], [0, 0, 0, 0], answer)
        equal(answer["packed"], 0, "bytes")
        # And the other way: only what changed here.
        os.unlink(src / "keep")
        answer = sync(world, box, "in")
        equal(paths(answer, "comes"), ["fresh_here", "here"])
        equal(paths(answer, "goes"), ["keep"])
        equal(box.sh("cat here fresh_here; ls keep 2>&1 | wc -l; cat there").split(), ["minef1", "theirs"])
        equal(box.read("here"), b"mine", "the mount sees it")
        answer = sync(world, box, "status")
        equal([len(answer[k]) for k in ("comes", "goes", "conflicts", "held", "stays")], [0] * 5, answer)


def test_credentials_are_synced_in_neither_direction(world):
    with project(world, **{".netrc": "mine", "d/.git-credentials": "mine", "d/f": "f"}) as box:
        src = pathlib.Path(box.source)
        names = [".netrc", "d/.git-credentials"]
        for command in ("status", "in", "out"):
            answer = sync(world, box, command)
            equal((paths(answer, "held"), paths(answer, "stays"), paths(answer, "comes")), (names, [], []), command)
        equal({h["why"] for h in answer["held"]}, {"it holds credentials, which are not synced"})
        # Those of the sandbox do not take their place, nor are they new here.
        box.sh("echo -n theirs > .netrc; echo -n theirs > .git-credentials; mkdir new; echo -n x > new/.NETRC; echo -n x > new/f")
        for command in ("status", "out", "in"):
            answer = sync(world, box, command)
            equal(paths(answer, "held"), [".git-credentials", ".netrc", "d/.git-credentials", "new/.NETRC"], command)
            equal(answer["conflicts"], [])
        equal(((src / ".netrc").read_text(), (src / "d/.git-credentials").read_text()), ("mine", "mine"))
        equal(sorted(os.listdir(src / "new")), ["f"])
        check(not (src / ".git-credentials").exists())
        os.unlink(src / ".netrc")
        sync(world, box, "in")
        equal(box.sh("cat .netrc; ls -A d"), "theirsf\n")
        box.sh("rm .netrc")
        equal(paths(sync(world, box, "out"), "held"), [".git-credentials", "d/.git-credentials", "new/.NETRC"])


def test_a_pattern_that_cannot_be_used_is_named(world):
    source = world.fresh("src")
    for pattern in ("[ESC", "a\nb", "**/" * 9 + "x"):
        r = world.rsb("up", "--name", "never", "--exclude", pattern, source, check_status=125)
        harness.sentence(r, "'" + pattern.replace("\n", "\\x0a") + "' is no pattern")
    put(source, **{".rsbignore": "ok\n[open\n"})
    harness.sentence(world.rsb("up", "--name", "never", source, check_status=125), "'[open' is no pattern")
    equal(json.loads(world.rsb("list", "--json").stdout), [])
    with project(world, a="1") as box:
        harness.sentence(world.rsb("sync", "out", "--exclude", "[x", box.name, check_status=125), "'[x' is no pattern")


def test_files_are_counted_without_directories(world):
    source = world.fresh("src")
    put(source, a="1", d__e__b="2")
    with harness.named(world, "count") as name:
        answer = json.loads(world.rsb("up", "--name", name, "--json", source).stdout)
        equal(answer["files"], 2)
        world.rsb("down", "--kill", name)


def test_many_deletions_need_a_word(world):
    with project(world, **{f"d__{i}": "x" for i in range(40)}) as box:
        src = pathlib.Path(box.source)
        before = tree(src)
        box.sh("rm -r d; echo -n y > other")
        r = world.rsb("sync", "out", box.name, check_status=125)
        check(b"40 of 40 files are gone" in r.stderr, r.stderr)
        equal(tree(src), before, "nothing is changed")
        sync(world, box, "out", "--delete-many")
        equal(tree(src), {b"other": ("file", 0o644, b"y")})


def test_names_with_every_byte(world):
    with project(world, a="1") as box:
        box.exec("python3", "-c", """
import os
for c in range(1, 256):
    if c != ord("/"):
        with open(b"n" + bytes([c]) + b"x", "wb") as f:
            f.write(bytes([c]))
os.mkdir(b"\\xff\\n")
os.symlink(b"..", b"\\xff\\n/up")
""")
        answer = sync(world, box, "out")
        equal(len(answer["comes"]), 254 + 2)
        for c in range(1, 256):
            if c != ord("/"):
                with open(os.fsencode(box.source) + b"/n" + bytes([c]) + b"x", "rb") as f:
                    equal(f.read(), bytes([c]))
        equal(os.readlink(os.fsencode(box.source) + b"/\xff\n/up"), b"..")


def test_nothing_leads_out_and_git_takes_no_orders(world):
    outside = world.fresh("outside")
    put(outside, secret="s")
    source = world.fresh("src")
    put(source, d__file="f")
    subprocess.run(["git", "init", "-q", source], check=True, env=world.env)
    put(source, **{".git/hooks/mine": "true"})
    with world.sandbox(source) as box:
        src = pathlib.Path(box.source)
        before = tree(src)
        box.sh("echo evil >> .git/config; echo evil > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout;"
               "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; rm -rf .git/hooks/mine;"
               f"ln -s {outside}/secret abs; ln -s ../../x up; mkfifo pipe; rm -r d; ln -s {outside} d;"
               "mkdir -p bare/objects bare/refs bare/hooks; echo 'ref: refs/heads/x' > bare/HEAD; echo evil > bare/config;"
               "mkdir -p sub; echo 'gitdir: /tmp' > sub/.git; mkdir -p .GIT/hooks; echo evil > .GIT/config;"
               "mkdir -p .git/refs/heads; echo x > .git/refs/heads/config; ln -s /etc .git/objects/link")
        answer = sync(world, box, "out")
        held = paths(answer, "held")
        for name in (".git/config", ".git/hooks/post-checkout", ".git/info/attributes", "abs", "up", "pipe", "d",
                     "bare/HEAD", "sub/.git", ".GIT/config", ".GIT/hooks", ".git/objects/link"):
            check(name in held, f"{name} is not in {held}")
        check(".git/hooks/mine" not in paths(answer, "goes"), "deletions of hooks stay there")
        after = tree(src)
        for name in (b"abs", b"up", b"pipe", b"bare/HEAD", b"sub/.git", b".GIT/config", b".git/hooks/post-checkout"):
            check(name not in after, name)
        equal(after[b".git/config"], before[b".git/config"], "the settings")
        equal(after[b".git/refs/heads/config"], ("file", 0o644, b"x\n"), "a branch called config")
        check((src / "d").is_dir() and not (src / "d").is_symlink(), "no link in its place")
        equal(tree(outside), {b"secret": ("file", 0o644, b"s")})
        # A repository that is put together in two syncs is none either.
        box.sh("mkdir -p late; echo 'ref: refs/heads/x' > late/HEAD; echo evil > late/config")
        sync(world, box, "out")
        box.sh("mkdir late/objects late/refs; touch late/objects/a late/refs/b")
        answer = sync(world, box, "out")
        check("late/objects" in paths(answer, "held"), answer["held"])
        r = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=src / "late", capture_output=True, env=world.env, check=True)
        check(r.stdout.strip() != b".", "git takes it for no repository")
        # Who trusts it gets it.
        answer = sync(world, box, "out", "--trust-git")
        check(".git/hooks/post-checkout" in paths(answer, "comes"), answer["comes"])


def test_what_a_file_has(world):
    with project(world, a="1") as box:
        box.exec("python3", "-c", """
import os
with open("sparse", "wb") as f:
    f.truncate(1 << 30)
    f.seek(1 << 29)
    f.write(b"x" * 4096)
with open("one", "wb") as f:
    f.write(b"linked")
os.link("one", "two")
os.chmod("one", 0o4755)
""")
        sync(world, box, "out")
        src = pathlib.Path(box.source)
        st = (src / "sparse").stat()
        equal(st.st_size, 1 << 30)
        check(st.st_blocks * 512 < 1 << 20, f"{st.st_blocks} blocks")
        with open(src / "sparse", "rb") as f:
            f.seek(1 << 29)
            equal(f.read(4097), b"x" * 4096 + b"\0")
        equal((src / "one").stat().st_ino, (src / "two").stat().st_ino, "one file")
        equal((src / "one").stat().st_mode & 0o7777, 0o755, "no set-user-ID")


def peak(world, *args):
    """Runs rsb; the most memory that it had, in KiB."""
    with subprocess.Popen(["rsb", *args], env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as rsb:
        _, status, usage = os.wait4(rsb.pid, 0)
        rsb.returncode = os.waitstatus_to_exitcode(status)
        equal(rsb.returncode, 0, " ".join(args))
        return usage.ru_maxrss


def test_many_small_files_from_here(world):
    """Up, out and down, in memory for the names alone."""
    n = harness.how_many(1000, 5000, 20000)
    source = pathlib.Path(world.fresh("src"))
    for i in range(n):
        put(source, **{f"d{i // 100}__f{i}": str(i)})
    with harness.named(world, "many") as name:
        peaks = [peak(world, "up", "--name", name, str(source))]
        world.rsb("exec", "-s", name, "-q", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo new > d0/f$i; done")
        peaks.append(peak(world, "sync", "out", name))
        equal((source / "d0/f10").read_text(), "new\n")
        world.rsb("exec", "-s", name, "-q", "sh", "-c", "echo newer > d1/f100")
        peaks.append(peak(world, "down", "--kill", name))
        equal((source / "d1/f100").read_text(), "newer\n")
        if not world.sanitized:
            check(max(peaks) < (32 << 10) + 2 * n, f"{peaks} KiB for {n} files")


def test_many_small_files(world):
    n = harness.how_many(500, 5000, 20000)
    with project(world, a="1") as box:
        box.sh(f"mkdir many; cd many; for i in $(seq {n}); do echo $i > $i; done")
        answer = sync(world, box, "out")
        equal(len(answer["comes"]), n + 1)
        box.sh("echo changed > many/7; echo more > many/more")
        answer = sync(world, box, "out")
        equal(paths(answer, "comes"), ["many/7", "many/more"])
        check(answer["packed"] < 4096, f"{answer['packed']} bytes for two files")


def test_a_disk_that_fills_leaves_the_tree_as_it_was(world):
    if os.geteuid() != 0:
        print("skipped: an ordinary user mounts no disk of 8 MiB")
        return
    source = world.fresh("src")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", source], check=True)
    try:
        put(source, a="old", b="old")
        with world.sandbox(source) as box:
            before = tree(source)
            box.sh("echo new > a; rm b; head -c 12000000 /dev/urandom > big")
            r = world.rsb("sync", "out", box.name, check_status=125)
            check(b"No space left" in r.stderr, r.stderr)
            equal(tree(source), before, "as it was")
            box.sh("head -c 100000 /dev/urandom > big")
            sync(world, box, "out")
            check(b"b" not in tree(source), "complete")
    finally:
        subprocess.run(["umount", source], check=True)


def test_killed_at_any_point(world):
    with project(world, **{f"f{i}": "old" for i in range(40)}) as box:
        src = pathlib.Path(box.source)
        for round_n in range(harness.how_many(3, 8, 30)):
            text = f"new {round_n}"
            before = {p.name: p.read_bytes() for p in src.iterdir() if p.is_file()}
            box.sh(f"for i in $(seq 0 39); do echo -n '{text}' > f$i; done")
            with subprocess.Popen(["rsb", "sync", "out", "-q", box.name], env=world.env, stderr=subprocess.DEVNULL) as rsb:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    rsb.wait(timeout=0.02 * (round_n + 1))
                rsb.send_signal(signal.SIGKILL)
            for name, old in before.items():
                check((src / name).read_bytes() in (old, text.encode()), f"{name} is half")
            sync(world, box, "out")
            equal({p.read_text() for p in src.iterdir() if p.is_file()}, {text}, "complete")
            check(not (src / ".rsb").exists() or not list((src / ".rsb").iterdir()), "no stage is left")


def test_what_is_excluded_is_so_both_ways(world):
    with project(world, **{".rsbignore": "*.log\n", "a__node_modules__x": "1", "b.log": "here"}) as box:
        src = pathlib.Path(box.source)
        box.sh("mkdir -p deep/node_modules; echo 1 > deep/node_modules/y; echo there > b.log; echo 1 > deep/c.log")
        answer = sync(world, box, "out")
        equal(paths(answer, "comes"), ["deep"])
        equal((src / "b.log").read_text(), "here")
        check((src / "a/node_modules/x").exists(), "what never went in is not gone")


def test_bad_calls(world):
    with project(world, a="1") as box:
        for args in (("sync",), ("sync", "up"), ("sync", "out", "a", "b"), ("sync", "resolve"), ("sync", "resolve", "a"),
                     ("sync", "out", "--ours")):
            world.rsb(*args, check_status=2)
        r = world.rsb("sync", "out", "nobody", check_status=125)
        check(b"there is no sandbox 'nobody'" in r.stderr, r.stderr)
        # A record that is damaged counts as none: contents are compared.
        with open(box.state("manifest"), "r+b") as f:
            f.seek(20)
            f.write(b"\xff\xff")
        answer = sync(world, box, "out")
        equal([len(answer[k]) for k in ("comes", "goes", "conflicts")], [0, 0, 0], answer)


def down(world, box, *args, status=0):
    return world.rsb("down", *args, box.name, check_status=status)


def is_up(world, box):
    row, = [row for row in json.loads(world.rsb("list", "--json").stdout) if row["name"] == box.name]
    return row["state"] == "running", row.get("mount") == box.mount


def test_down_brings_out_first(world):
    for how in ("--kill", "--leave", None):
        with project(world, keep="k", old="old", gone="g") as box:
            src = pathlib.Path(box.source)
            box.sh("echo -n new > old; rm gone")
            pathlib.Path(box.mount, "mine").write_text("m", encoding="utf-8")
            r = down(world, box, *(how,) if how else ())
            check(b"synced out" in r.stdout and b"2 changed, 1 removed" in r.stdout, r.stdout)
            equal(tree(src), {b"keep": ("file", 0o644, b"k"), b"old": ("file", 0o644, b"new"), b"mine": ("file", 0o644, b"m")})
            if not how:
                check(b"is down, paused" in r.stdout, r.stdout)


def test_down_tells_how_much_came(world):
    with project(world, file="x") as box:
        box.sh("touch a b; rm file")
        answer = json.loads(down(world, box, "--kill", "--json").stdout)
        equal({k: answer[k] for k in ("end", "synced", "changed", "removed")},
              {"end": "killed", "synced": True, "changed": 2, "removed": 1})


def test_down_without_sync(world):
    for up, args in (((), ("--no-sync",)), ((), ("-o", "sync.out_on_down=false"))):
        with project(world, file="old") as box:
            box.sh("echo -n new > file")
            answer = json.loads(down(world, box, "--leave", "--json", *args).stdout)
            equal((answer["synced"], answer["changed"]), (False, 0))
            equal(pathlib.Path(box.source, "file").read_text(), "old")


def test_down_stays_with_conflicts(world):
    with project(world, both="old") as box:
        src = pathlib.Path(box.source)
        put(src, both="here")
        box.sh("echo -n there > both")
        r = down(world, box, "--kill", status=1)
        check(b"both" in r.stderr and b"rsb sync resolve" in r.stderr, r.stderr)
        equal(is_up(world, box), (True, True))
        down(world, box, "--kill", status=1)
        world.run("rsb", "sync", "resolve", "--theirs", "both", cwd=src)
        down(world, box, "--kill")
        equal((src / "both").read_text(), "there")
    with project(world, both="old") as box:
        put(box.source, both="here")
        box.sh("echo -n there > both")
        r = down(world, box, "--kill", "--force")
        check(b"is in conflict" in r.stderr, "forced, it is told")
        equal(pathlib.Path(box.source, "both").read_text(), "here")


def test_down_stays_when_it_cannot_sync_out(world):
    """The directory is gone, or cannot be written to."""
    with project(world, file="old") as box:
        box.sh("echo -n new > file")
        os.rename(box.source, f"{box.source}-moved")
        harness.sentence(down(world, box, "--kill", status=125), box.source, f"the sandbox {box.name} stays",
                         f"rsb down --no-sync {box.name}")
        equal(is_up(world, box), (True, True))
        r = down(world, box, "--kill", "--force")
        harness.sentence(r, "not synced out", box.source)
        equal(json.loads(world.rsb("list", "--json").stdout), [])


def test_down_stays_when_something_cannot_come(world):
    """That is no success, whatever else came; what stays by a rule is told once, and is no reason."""
    with project(world, file="old") as box:
        src = pathlib.Path(box.source)
        put(src, **{"new": "mine", "new.rsb-conflict": "own"})
        box.sh("echo -n new > new; echo -n new > file; mkfifo fifo")
        r = down(world, box, "--kill", status=125)
        check(b"new is left as it was" in r.stderr and b"not everything" in r.stderr, r.stderr)
        equal(is_up(world, box), (True, True))
        equal(paths(sync(world, box, "out", status=1), "missed"), ["new"])
        os.unlink(src / "new")
        r = down(world, box, "--kill")
        equal(r.stderr.count(b"fifo is left as it was"), 1, r.stderr)
        equal(((src / "new").read_text(), (src / "file").read_text()), ("new", "new"))


def test_down_of_what_was_made_empty(world):
    with harness.named(world, "empty") as name:
        world.rsb("create", name)
        answer = json.loads(world.rsb("down", "--kill", "--json", name).stdout)
        equal((answer["end"], answer["synced"]), ("killed", False))


harness.main(globals())
