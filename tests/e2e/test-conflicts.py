# SPDX-License-Identifier: MIT
"""What changed on both sides: both are kept, whatever they are, until somebody decides."""

import pathlib
import subprocess

import harness
from harness import check, equal
from twosides import paths, project, put, sync, tree


def test_what_was_synced_after_the_snapshot_stays_here(world):
    """The sandbox is made again of it, and nobody there has deleted or taken back what it does not know."""
    with project(world, old="v1", same="s") as box:
        src = pathlib.Path(box.source)
        world.rsb("snapshot", box.name)
        box.sh("echo -n v2 > old; echo -n new > made")
        equal(sorted(paths(sync(world, box, "out"), "comes")), ["made", "old"])
        world.api("DELETE", f"/sandboxes/{box.status()['sandbox']}")
        harness.wait_until(lambda: any(e["kind"] == "restored" for e in box.events()), 60, "it is made again")
        got = sync(world, box, "out", status=1)
        equal((paths(got, "conflicts"), paths(got, "comes")), (["old"], []))
        equal(((src / "old").read_text(), (src / "made").read_text()), ("v2", "new"))
        sync(world, box, "in", status=1)
        equal(box.read("made"), b"new")


def test_a_repository_where_a_file_is(world):
    with project(world, f="mine", other="old") as box:
        box.sh("rm f; mkdir f; git init -q f; echo -n new > other")
        got = sync(world, box, "out", status=None)
        check("other" in paths(got, "comes"), got)
        check(any(p.startswith("f") for k in ("comes", "held", "conflicts") for p in paths(got, k)), got)
        equal(pathlib.Path(box.source, "other").read_text(), "new")


def test_conflicts_keep_both(world):
    with project(world, both="old", edited="old", removed="old", twin="old") as box:
        src = pathlib.Path(box.source)
        put(src, both="mine", edited="mine", twin="same")
        (src / "removed").unlink()
        box.sh("echo -n theirs > both; rm edited; echo -n theirs > removed; echo -n same > twin")
        answer = sync(world, box, "out", status=1)
        equal(paths(answer, "conflicts"), ["both", "edited", "removed"])
        equal((src / "both").read_text(), "mine")
        equal((src / "both.rsb-conflict").read_text(), "theirs")
        equal((src / "edited").read_text(), "mine")
        equal((src / "removed.rsb-conflict").read_text(), "theirs")
        check(not (src / "removed").exists(), "removed here stays so")
        # They stay conflicts until they are resolved, and nothing goes in over them.
        equal(paths(sync(world, box, "status", status=1), "conflicts"), ["both", "edited", "removed"])
        sync(world, box, "in", status=1)
        equal(box.read("both"), b"theirs")
        for path, whose in (("both", "--ours"), ("edited", "--theirs"), ("removed", "--theirs")):
            world.run("rsb", "sync", "resolve", path, whose, cwd=src)
        equal((src / "both").read_text(), "mine")
        equal((src / "removed").read_text(), "theirs")
        check(not (src / "edited").exists(), "theirs is gone")
        check(not list(src.glob("*.rsb-conflict")), "no copies are left")
        answer = sync(world, box, "in")
        equal(paths(answer, "comes"), ["both"])
        equal(box.read("both"), b"mine")
        r = world.run("rsb", "sync", "resolve", "both", "--ours", cwd=src, check_status=125)
        check(b"in no conflict" in r.stderr, r.stderr)


def test_a_file_against_a_directory(world):
    with project(world, a="old", b="old", c="old") as box:
        src = pathlib.Path(box.source)
        put(src, a="mine", b="mine")
        (src / "c").unlink()
        box.sh("for n in a b c; do rm $n; mkdir $n; echo -n x > $n/x; done")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "comes")), (["a", "b"], ["c", "c/x"]))
        check("a directory there" in answer["conflicts"][0]["why"], answer["conflicts"])
        # Both are kept.
        equal(((src / "a").read_text(), (src / "a.rsb-conflict/x").read_text()), ("mine", "x"))
        equal(((src / "b").read_text(), (src / "b.rsb-conflict/x").read_text()), ("mine", "x"))
        equal((src / "c/x").read_text(), "x", "a directory where nothing is comes")
        equal(paths(sync(world, box, "in", status=1), "conflicts"), ["a", "b"])
        world.run("rsb", "sync", "resolve", "a", "--theirs", cwd=src)
        equal(paths(sync(world, box, "out", status=1), "conflicts"), ["b"])
        equal((src / "a/x").read_text(), "x")
        check(not (src / "a.rsb-conflict").exists(), "the copy is gone")
        # It is of one moment.
        equal(sync(world, box, "out", status=1)["packed"], 0, "nothing has changed in it")
        box.sh("rm b/x; mkdir -p b/deep/er; echo -n y > b/deep/er/y; ln -s y b/deep/er/link; ln -s /etc b/out; chmod 700 b/deep;"
               "mkdir -p b/.git/hooks; echo x > b/.git/hooks/post-checkout")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "held")), (["b"], ["b/.git/hooks", "b/.git/hooks/post-checkout", "b/out"]))
        equal(tree(src / "b.rsb-conflict"), {b".git": ("dir",), b"deep": ("dir",), b"deep/er": ("dir",), b"deep/er/y": ("file", 0o644, b"y"),
                                             b"deep/er/link": ("link", b"y")})
        equal((src / "b.rsb-conflict/deep").stat().st_mode & 0o777, 0o700)
        box.sh("rm -r b; echo -n theirs > b")
        equal(paths(sync(world, box, "out", status=1), "conflicts"), ["b"])
        equal((src / "b.rsb-conflict").read_text(), "theirs")
        world.run("rsb", "sync", "resolve", "b", "--ours", cwd=src)
        sync(world, box, "in")
        equal(box.read("b"), b"mine")


def test_our_file_goes_over_their_directory(world):
    with project(world, d="old", e="old") as box:
        src = pathlib.Path(box.source)
        put(src, d="mine", e="mine", **{"e.rsb-conflict__own": "own"})
        box.sh("for n in d e; do rm $n; mkdir -p $n/deep; echo -n x > $n/deep/x; done")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "missed")), (["d"], ["e"]))
        equal(tree(src / "e.rsb-conflict"), {b"own": ("file", 0o644, b"own")}, "nothing is put into what is ours")
        world.run("rsb", "sync", "resolve", "d", "--ours", cwd=src)
        check(not (src / "d.rsb-conflict").exists(), "the copy is gone")
        answer = sync(world, box, "in", status=1)
        equal((paths(answer, "conflicts"), box.read("d")), (["e"], b"mine"))
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "missed"), paths(answer, "stays")), ([], ["e"], []))


def test_a_directory_that_changed_and_became_a_file(world):
    """The file is ours, what changed in the directory theirs."""
    with project(world, d__a="old", d__b="old", d__c="old", e__a="old") as box:
        src = pathlib.Path(box.source)
        for name in ("d", "e"):
            subprocess.run(["rm", "-r", src / name], check=True)
        put(src, d="mine", e="mine")
        box.sh("echo -n theirs > d/b; rm d/c")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "stays")), (["d"], ["e", "e/a"]))
        equal(tree(src / "d.rsb-conflict"), {b"a": ("file", 0o644, b"old"), b"b": ("file", 0o644, b"theirs")})
        equal(paths(sync(world, box, "in", status=1), "conflicts"), ["d"])
        equal((box.read("e"), box.read("d/b")), (b"mine", b"theirs"))
        world.run("rsb", "sync", "resolve", "--all", "--theirs", cwd=src)
        sync(world, box, "out")
        equal(tree(src), {b"d": ("dir",), b"d/a": ("file", 0o644, b"old"), b"d/b": ("file", 0o644, b"theirs"), b"e": ("file", 0o644, b"mine")})


def test_a_directory_against_a_file(world):
    """New here, or changed; in either case all of it stays until somebody decides."""
    with project(world, a="old", b__a="old", b__b="old", c__a="old", d__a="old") as box:
        src = pathlib.Path(box.source)
        (src / "a").unlink()
        put(src, a__new="mine", b__b="mine", d__a="mine")
        box.sh("rm -r b c d; for n in a b c d; do echo -n theirs > $n; done")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "comes"), paths(answer, "goes")), (["a", "b", "d"], ["c"], ["c/a"]))
        kept = {b"a": ("dir",), b"a/new": ("file", 0o644, b"mine"), b"b": ("dir",), b"b/a": ("file", 0o644, b"old"),
                b"b/b": ("file", 0o644, b"mine"), b"c": ("file", 0o644, b"theirs"), b"d": ("dir",), b"d/a": ("file", 0o644, b"mine")}
        copies = {name + b".rsb-conflict": ("file", 0o644, b"theirs") for name in (b"a", b"b", b"d")}
        equal(tree(src), kept | copies)
        for way in ("in", "out"):
            equal(paths(sync(world, box, way, status=1), "conflicts"), ["a", "b", "d"])
        equal(box.sh("cat a b d"), "theirs" * 3)
        for path, whose in (("a", "--ours"), ("b", "--ours"), ("d", "--theirs")):
            world.run("rsb", "sync", "resolve", path, whose, cwd=src)
        equal(tree(src), kept)
        equal(paths(sync(world, box, "out"), "goes"), ["d/a"])
        sync(world, box, "in")
        equal(tree(src), {k: v for k, v in kept.items() if k != b"d/a"} | {b"d": ("file", 0o644, b"theirs")})
        equal(box.sh("cat a/new b/a b/b d"), "mineoldminetheirs")


def test_names_of_copies_are_names_of_files_too(world):
    with project(world, x="old", y="old") as box:
        src = pathlib.Path(box.source)
        box.sh("echo -n own > x.rsb-conflict")
        equal(paths(sync(world, box, "out"), "comes"), ["x.rsb-conflict"])
        put(src, x="mine", y="mine")
        box.sh("echo -n theirs > x; echo -n theirs > y")
        answer = sync(world, box, "out", status=1)
        equal((paths(answer, "conflicts"), paths(answer, "missed")), (["y"], ["x"]))
        equal((src / "x.rsb-conflict").read_text(), "own", "nothing is written over")
        equal((src / "y.rsb-conflict").read_text(), "theirs")
        equal(paths(sync(world, box, "in", status=1), "comes"), [], "a copy does not go in")
        box.sh("rm x.rsb-conflict")
        sync(world, box, "out", status=1)
        equal(paths(sync(world, box, "out", status=1), "conflicts"), ["x", "y"])
        equal((src / "x.rsb-conflict").read_text(), "theirs")


harness.main(globals())
