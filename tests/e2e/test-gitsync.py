# SPDX-License-Identifier: MIT
"""A repository and the sandbox that it went into, with git at work on both sides."""

import contextlib
import json
import os
import pathlib

import gitmake
import harness
from harness import check, equal

ALL = ("comes", "goes", "conflicts", "held", "missed", "stays")


def git(world, where, *args, **kw):
    return world.run("git", *args, cwd=where, **kw).stdout.decode().strip()


def commit(world, where, name, text):
    pathlib.Path(where, name).write_text(text, encoding="utf-8")
    git(world, where, "add", name)
    git(world, where, "commit", "-q", "-m", name)


def sync(world, box, *args, status=0):
    return json.loads(world.rsb("sync", *args, "--json", box.name, check_status=status).stdout)


def paths(answer, key):
    return sorted(item["path"] for item in answer[key])


@contextlib.contextmanager
def repository(world, n=2):
    source = pathlib.Path(world.fresh("src"))
    git(world, source, "init", "-q", "-b", "main")
    for i in range(n):
        commit(world, source, f"f{i}", f"{i}")
    with world.sandbox(str(source)) as box:
        box.sh("git config --global user.name t; git config --global user.email t@example.org")
        yield box, source


def restat(world, where, seconds, name="f0"):
    """Git writes its index anew, with what the file looks like now."""
    os.utime(pathlib.Path(where, name), (seconds, seconds))
    before = pathlib.Path(where, ".git/index").read_bytes()
    git(world, where, "status")
    check(pathlib.Path(where, ".git/index").read_bytes() != before, "the index is written anew")


def test_status_on_both_sides_is_no_conflict(world):
    with repository(world) as (box, source):
        restat(world, source, 10**9)
        box.sh("touch -d @1000000000 f1; git status")
        equal(paths(sync(world, box, "out"), "conflicts"), [])
        restat(world, source, 10**9 + 1)
        box.sh("touch -d @1000000001 f1; git status")
        equal(paths(sync(world, box, "in"), "conflicts"), [])


def test_what_is_staged_is_not_lost_over_a_status(world):
    with repository(world) as (box, source):
        restat(world, source, 10**9)
        box.sh("echo -n there > new; git add new")
        equal(paths(sync(world, box, "out"), "conflicts"), [])
        equal(git(world, source, "diff", "--cached", "--name-only"), "new")
        # And the other way.
        box.sh("touch -d @1000000000 f1; git status")
        pathlib.Path(source, "more").write_text("here", encoding="utf-8")
        git(world, source, "add", "more")
        equal(paths(sync(world, box, "in"), "conflicts"), [])
        equal(box.sh("git diff --cached --name-only").split(), ["more", "new"])
        equal({k: paths(sync(world, box, "status"), k) for k in ALL}, {k: [] for k in ALL})


def test_the_same_on_both_sides_is_no_conflict_for_sync_in(world):
    with repository(world) as (box, source):
        pathlib.Path(source, "f0").write_text("twin", encoding="utf-8")
        pathlib.Path(source, "f1").write_text("here", encoding="utf-8")
        box.sh("echo -n twin > f0; echo -n thre > f1")
        equal(paths(sync(world, box, "in", status=1), "conflicts"), ["f1"])
        check(not pathlib.Path(source, ".rsb").exists(), "no stage is left")


def test_commits_on_both_sides_are_one_conflict(world):
    with repository(world) as (box, source):
        commit(world, source, "here", "h")
        box.sh("echo -n t > there; git add there; git commit -q -m there; git branch more")
        before = git(world, source, "for-each-ref")
        r = world.rsb("sync", "out", box.name, check_status=1)
        equal(r.stderr.count(b"is in conflict"), 1, r.stderr)
        check(b".git is in conflict: git changed it on both sides" in r.stderr and b"git pull --no-rebase" in r.stderr, r.stderr)
        equal(git(world, source, "for-each-ref"), before, "no branch appears or moves")
        check(not list(source.glob(".git/**/*.rsb-conflict")), "nothing lies in it")
        equal(git(world, source, "fsck", "--no-dangling"), "", "all objects are whole")
        for way in ("in", "out", "status"):
            equal(paths(sync(world, box, way, status=1), "conflicts"), [".git"])
        equal(box.sh("git log --format=%s -1").strip(), "there", "nor does anything go in")
        # What the message says: what came in is committed and merged in the mount, and then theirs.
        git(world, box.mount, "add", "-A")
        git(world, box.mount, "commit", "-q", "-m", "rest")
        git(world, box.mount, "pull", "-q", "--no-rebase", "--no-edit", str(source), "main")
        r = world.run("rsb", "sync", "resolve", ".git", "--theirs", cwd=source)
        check(b"'rsb sync out' brings it" in r.stdout, r.stdout)
        sync(world, box, "out")
        equal(git(world, source, "status", "--porcelain"), "")
        for name in ("here", "there", "rest", "f0"):
            check(f"\n{name}\n" in git(world, source, "log", "--format=%s") + "\n", name)
        check("more" in git(world, source, "branch"), "and what else there is")
        equal({k: paths(sync(world, box, "status"), k) for k in ALL}, {k: [] for k in ALL})


def test_a_link_that_leads_out_is_merged_there(world):
    """Git here cannot read it in the mount: it brings the commits, and git there merges, as rsb(1) has it."""
    with repository(world) as (box, source):
        os.symlink("/usr/share/elsewhere", source / "link")
        git(world, source, "add", "link")
        git(world, source, "commit", "-q", "-m", "link")
        sync(world, box, "in")
        commit(world, source, "here", "h")
        box.sh("echo -n t > there; git add there; git commit -q -m there")
        equal(paths(sync(world, box, "out", status=1), "conflicts"), [".git"])
        r = world.run("git", "pull", "--no-rebase", "--no-edit", str(source), "main", cwd=box.mount, check_status=None)
        check(r.returncode != 0 and b"Permission denied" in r.stderr, r)
        git(world, box.mount, "fetch", "-q", str(source), "main")
        box.exec("git", "merge", "-q", "--no-edit", "FETCH_HEAD")
        world.run("rsb", "sync", "resolve", ".git", "--theirs", cwd=source)
        sync(world, box, "out")
        equal(git(world, source, "status", "--porcelain"), "")
        check({"here", "there", "link"} <= set(git(world, source, "log", "--format=%s").split("\n")), "all is merged")


def test_our_side_of_a_repository(world):
    with repository(world) as (box, source):
        commit(world, source, "here", "h")
        box.sh("echo -n t > there; git add there; git commit -q -m there")
        theirs = box.sh("git rev-parse HEAD").strip()
        sync(world, box, "out", status=1)
        check(theirs in git(world, source, "fsck", "--lost-found"), "their commit is here, and nobody's")
        r = world.run("rsb", "sync", "resolve", ".git/HEAD", "--ours", cwd=source)
        check(b"'rsb sync in' brings it there" in r.stdout, r.stdout)
        sync(world, box, "in")
        equal(box.sh("git log --format=%s -1; git fsck --no-dangling").strip(), "here")
        equal(box.sh(f"git log --format=%s -1 {theirs}").strip(), "there", "their commit is there still")
        sync(world, box, "out")
        equal(git(world, source, "log", "--format=%s", "-1"), "here")


def test_resolve_takes_a_directory_and_all(world):
    with repository(world) as (box, source):
        (source / "d").mkdir()
        for name in ("d/a", "d/b", "c"):
            (source / name).write_text("old", encoding="utf-8")
        sync(world, box, "in")
        for name in ("d/a", "d/b", "c"):
            (source / name).write_text("here", encoding="utf-8")
            box.sh(f"echo -n there > {name}")
        equal(paths(sync(world, box, "out", status=1), "conflicts"), ["c", "d/a", "d/b"])
        world.rsb("sync", "resolve", "--all", check_status=2)
        r = world.rsb("sync", "resolve", "c", "--all", "--ours", check_status=125)
        harness.sentence(r, "there is no sandbox 'c'")
        answer = json.loads(world.run("rsb", "sync", "resolve", "d", "--theirs", "--json", cwd=source).stdout)
        equal((answer["resolved"], answer["kept"]), (2, "theirs"))
        equal([(source / n).read_text(encoding="utf-8") for n in ("d/a", "d/b", "c")], ["there", "there", "here"])
        world.run("rsb", "sync", "resolve", "--all", "--ours", box.name, cwd="/")
        r = world.run("rsb", "sync", "resolve", "--all", "--ours", cwd=source, check_status=125)
        harness.sentence(r, "no conflict")
        check(not list(source.glob("**/*.rsb-conflict")), "no copies are left")
        sync(world, box, "in")
        equal(box.sh("cat c d/a d/b"), "heretherethere")


def test_a_gc_there_is_no_reason_to_ask(world):
    with repository(world, 40) as (box, source):
        box.sh("echo -n t > there; git add there; git commit -q -m there; git gc -q --prune=now")
        before = {p for p in source.glob(".git/objects/**/*") if p.is_file()}
        answer = sync(world, box, "out")
        equal([p for p in paths(answer, "goes") if "/objects/" in p], [])
        equal(before - set(source.glob(".git/objects/**/*")), set(), "no object that was here goes")
        equal(git(world, source, "fsck"), "")
        equal(git(world, source, "log", "--format=%s", "-1"), "there")
        # A gc here then makes them few, and takes nothing away there.
        git(world, source, "gc", "-q", "--prune=now")
        sync(world, box, "in")
        box.sh("git fsck; echo -n u > u; git add u; git commit -q -m u")
        sync(world, box, "out")
        equal(git(world, source, "fsck"), "")
        equal(git(world, source, "log", "--format=%s", "-1"), "u")


def test_objects_are_not_taken_away_or_spoilt(world):
    """By a sandbox that deletes all of them, or writes something else under their names."""
    with repository(world, 5) as (box, source):
        git(world, source, "gc", "-q")
        sync(world, box, "in")
        box.sh("for f in $(find .git/objects -type f -name '*.pack'); do chmod 644 $f; echo bad > $f; done")
        sync(world, box, "out")
        equal(git(world, source, "fsck"), "")
        box.sh("rm -rf .git/objects/*/*")
        sync(world, box, "out")
        equal(git(world, source, "fsck"), "")
        # Other files of a repository are counted as ever.
        box.sh("for i in $(seq 40); do cp .git/HEAD .git/refs/heads/b$i; done")
        sync(world, box, "out")
        box.sh("rm .git/refs/heads/b*")
        r = world.rsb("sync", "out", box.name, check_status=125)
        check(b"40 of " in r.stderr, r.stderr)


def setting(world, where, key):
    return git(world, where, "config", "--local", "--get", key, check_status=None)


def test_harmless_settings_come_out(world):
    with repository(world) as (box, source):
        git(world, source, "config", "core.pager", "less -X")
        sync(world, box, "in")
        before = (source / ".git/config").read_bytes()
        box.sh("git config branch.main.description d; git config core.fsmonitor /evil; git config core.pager evil")
        r = world.rsb("sync", "out", "--dry-run", box.name)
        check(b"partly: .git/config: " in r.stdout and b"(core.pager, core.fsmonitor)" in r.stdout, r.stdout)
        equal((source / ".git/config").read_bytes(), before, "a dry run changes nothing")
        r = world.rsb("sync", "out", box.name)
        check(b".git/config comes only in part" in r.stderr and b"'rsb sync out --trust-git'" in r.stderr, r.stderr)
        equal([setting(world, source, k) for k in ("branch.main.description", "core.fsmonitor", "core.pager")], ["d", "", "less -X"])
        equal({k: paths(sync(world, box, "status"), k) for k in ALL}, {k: [] for k in ALL})
        # Nothing harmless is new: it stays, and why is said.
        box.sh("git config core.sshCommand /evil")
        held, = (item for item in sync(world, box, "out")["held"] if item["path"] == ".git/config")
        check("core.sshcommand)" in held["why"], held)
        # All harmless: it comes whole.
        box.sh("git config --unset core.fsmonitor; git config --unset core.sshCommand; git config core.pager 'less -X'; git config user.name n")
        answer = sync(world, box, "out")
        check(".git/config" in paths(answer, "comes"), answer)
        equal(setting(world, source, "user.name"), "n")
        box.sh("git config core.fsmonitor /evil")
        sync(world, box, "out", "--trust-git")
        equal(setting(world, source, "core.fsmonitor"), "/evil")


def test_names_of_settings_are_not_written_raw(world):
    with repository(world) as (box, _):
        box.exec("git", "config", "remote.a\x1b[31m\xff.uploadpack", "evil")
        r = world.rsb("sync", "out", box.name)
        check(b"\\x1b[31m" in r.stderr and b"\x1b" not in r.stderr, r.stderr)
        json.loads(world.rsb("sync", "out", "--json", box.name).stdout)


def test_names_that_lead_out_stay(world):
    """Of an index and what else names files to git, whatever is trusted."""
    with repository(world) as (box, source):
        blob = git(world, source, "rev-parse", "HEAD:f0")
        before = (source / ".git/index").read_bytes()

        def put(name, data):
            box.exec("sh", "-c", f"cat > {name}.new; mv {name}.new {name}", input=data)

        put(".git/index", gitmake.index(["../victim", "f0", "f1"], blob))
        box.sh("git repack -qad; git multi-pack-index write")
        text = box.read(".git/objects/pack/multi-pack-index")
        put(".git/objects/pack/multi-pack-index", gitmake.packs(text, "../x.idx"))
        for args in (("--dry-run",), (), ("--trust-git",)):
            held = {h["path"]: h["why"] for h in sync(world, box, "out", *args)["held"]}
            equal(held, {".git/index": "an index of files outside the working tree",
                         ".git/objects/pack/multi-pack-index": "packs outside the repository"})
        equal((source / ".git/index").read_bytes(), before)
        check(not (source / ".git/objects/pack/multi-pack-index").exists())
        # One that is sound comes, of this format alone.
        put(".git/index", gitmake.index(["f0"], blob))
        equal(paths(sync(world, box, "out"), "comes"), [".git/index"])
        put(".git/index", gitmake.index(["f0"], 2 * blob[:32]))
        equal([h["why"] for h in sync(world, box, "out")["held"] if h["path"] == ".git/index"],
              ["an index that can be read in two ways"])


def test_settings_with_credentials_stay(world):
    source = pathlib.Path(world.fresh("src"))
    git(world, source, "init", "-q", "-b", "main")
    git(world, source, "remote", "add", "origin", "https://me:secret@example.org/x")
    with world.sandbox(str(source)) as box:
        box.sh("git config user.name n")
        for more in ((), ("--trust-git",)):
            held, = (item for item in sync(world, box, "out", *more)["held"] if item["path"] == ".git/config")
            check("credentials" in held["why"], held)
        equal(setting(world, source, "remote.origin.url"), "https://me:secret@example.org/x")


def test_what_is_the_same_is_not_held(world):
    """In a sandbox that was made again all files look new; hooks are compared, and samples are none."""
    source = pathlib.Path(world.fresh("src"))
    git(world, source, "init", "-q", "-b", "main")
    (source / ".git/hooks/mine").write_text("mine\n", encoding="ascii")
    (source / ".git/hooks/x.sample").write_text("sample\n", encoding="ascii")
    with world.sandbox(str(source)) as box:
        world.rsb("snapshot", box.name)
        world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
        harness.wait_until(lambda: any(e["kind"] == "restored" for e in box.events()), 60, "it is made again")
        for command in ("status", "out", "status"):
            answer = sync(world, box, command)
            equal([paths(answer, word) for word in ("held", "comes", "conflicts")], [[], [], []], command)
        box.sh("echo evil > .git/hooks/mine; echo other > .git/hooks/x.sample")
        answer = sync(world, box, "out")
        equal((paths(answer, "held"), paths(answer, "comes")), ([".git/hooks/mine"], [".git/hooks/x.sample"]))
        equal((source / ".git/hooks/mine").read_text(encoding="ascii"), "mine\n")


def test_settings_that_are_no_settings_stay(world):
    """A second name of another file, a link, or too much."""
    with repository(world) as (box, source):
        before = (source / ".git/config").read_bytes()
        for script in ("rm .git/config; echo 'x' > other; ln other .git/config", "rm .git/config; ln -s ../other .git/config",
                       "rm .git/config; head -c 300000 /dev/zero | tr '\\0' '#' > .git/config"):
            box.sh(script)
            check(".git/config" in paths(sync(world, box, "out"), "held"), script)
            equal((source / ".git/config").read_bytes(), before, script)
        equal((source / "other").read_text(encoding="utf-8"), "x\n")


def test_settings_changed_on_both_sides(world):
    with repository(world) as (box, source):
        git(world, source, "config", "user.name", "here")
        box.sh("git config user.name there; echo -n n > new; git add new; git commit -q -m new")
        answer = sync(world, box, "out")
        check("both sides" in [i["why"] for i in answer["held"] if i["path"] == ".git/config"][0], answer["held"])
        equal((setting(world, source, "user.name"), git(world, source, "log", "--format=%s", "-1")), ("here", "new"))


def test_a_repository_made_there_comes_whole(world):
    source = pathlib.Path(world.fresh("src"))
    (source / "f").write_text("f", encoding="utf-8")
    with world.sandbox(str(source)) as box:
        box.sh("git init -q -b main; git config user.name n; git config user.email e@example.org; git add f; git commit -q -m one")
        sync(world, box, "out")
        equal((git(world, source, "log", "--format=%s"), setting(world, source, "user.name")), ("one", "n"))
        equal(git(world, source, "status", "--porcelain"), "")


def test_up_says_what_git_will_meet(world):
    source = pathlib.Path(world.fresh("src"))
    git(world, source, "init", "-q")
    for name in ("a/node_modules/x/y", "a/node_modules/z", "f", "keep.log", "g.log", "h.log"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("x", encoding="utf-8")
    (source / ".rsbignore").write_text("*.log\n!keep.log\n", encoding="utf-8")
    git(world, source, "add", "-A")
    git(world, source, "config", "core.hooksPath", ".husky")
    with harness.named(world, "said") as name:
        lines = world.rsb("up", "--name", name, str(source)).stderr.decode().strip().split("\n")
        equal(len(lines), 2, lines)
        check("(core.hooksPath)" in lines[0], lines)
        check("4 files under version control are left out: a/node_modules/x/y, a/node_modules/z, g.log, ...;" in lines[1], lines)
        world.rsb("down", "--kill", name)
        git(world, source, "config", "core.hooksPath", "/usr/share/hooks")
        git(world, source, "rm", "-q", "--cached", "a/node_modules/x/y", "a/node_modules/z", "g.log", "h.log")
        equal(world.rsb("up", "--name", name, str(source)).stderr, b"")
        world.rsb("down", "--kill", name)


harness.main(globals())
