# SPDX-License-Identifier: MIT
"""What is mapped of a file that git reads is of one judged text, whatever is done to the file meanwhile."""

import contextlib
import errno
import mmap
import os
import subprocess

import harness
from gittrap import git, without_guard
from harness import check, equal

PAGES = 8
PAGE = mmap.PAGESIZE


def text(name, pages=PAGES):
    """A configuration that tells on each of its pages which one it is."""
    line = f"[user]\n\tname = {name}\n#"
    return (line + "." * (PAGE - len(line) - 1) + "\n") * pages


def make(box):
    box.sh("git init -q -b main r")
    for name in "ab":
        box.exec("sh", "-c", f"cat > r/{name}", input=text(name).encode())
    box.sh("cd r; cat a > .git/config")
    return box.path("r/.git/config")


@contextlib.contextmanager
def mapped(path):
    """As git does it: the descriptor is closed, the mapping stays."""
    with open(path, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    with m:
        yield m


def names(m):
    return {m[at * PAGE + 15:at * PAGE + 16].decode() for at in range(len(m) // PAGE)}


def drop_pages(m):
    """This process finds them in the page cache again, or asks."""
    m.madvise(mmap.MADV_DONTNEED)


def error_of(path):
    try:
        with open(path, "rb"):
            return 0
    except OSError as e:
        return e.errno


def test_a_text_in_the_place_of_a_mapped_one(world):
    with world.sandbox() as box:
        path = make(box)
        with mapped(path) as m:
            equal(m[15:16], b"a")
            box.sh("cd r; cat b > .git/config")
            equal(error_of(path), errno.EBUSY, "another text of what is mapped")
            r = git(box, "config", "user.name", cwd=box.path("r"))
            check(b"config': Device or resource busy" in r.stderr, r.stderr)
            drop_pages(m)
            equal(names(m), {"a"}, "the mapping")
            # The same text is no other, however often it was read.
            box.sh("cd r; cat a > .git/config")
            with mapped(path) as again:
                equal(names(again), {"a"})
            box.sh("cd r; cat b > .git/config")
            equal(error_of(path), errno.EBUSY)
        with mapped(path) as m:
            equal(names(m), {"b"}, "after that was closed")
        with without_guard(box), mapped(path) as m:
            equal(m[15:16], b"b")
            box.sh("cd r; cat a > .git/config")
            equal(error_of(path), 0)
            drop_pages(m)
            equal(names(m), {"a"}, "the pages are those of whatever is there")


def test_the_size_is_that_of_what_is_open(world):
    with world.sandbox() as box:
        path = make(box)
        with open(path, "rb") as f:
            for change in "head -c 100 a", "cat a b":
                box.sh(f"cd r; {change} > .git/config")
                equal(os.fstat(f.fileno()).st_size, PAGES * PAGE, "a text is not cut to the size of another")
                equal(os.stat(path).st_size, PAGES * PAGE)
                equal(len(f.read()), PAGES * PAGE)
                f.seek(0)
        equal(os.stat(path).st_size, 2 * PAGES * PAGE, "after it was closed")
        equal(names(box.read("r/.git/config")), {"a", "b"})


def test_what_was_written_here_is_read_at_once(world):
    with world.sandbox() as box:
        path = make(box)
        with open(path, "r+b", buffering=0) as f:
            f.write(text("c", 1).encode())
            equal(names(box.read("r/.git/config")), {"a", "c"}, "before it is closed")


def test_who_writes_it_here(world):
    """The pages that a writer looks at are no part of what others have mapped."""
    with world.sandbox() as box:
        path = make(box)
        with open(path, "r+b", buffering=0) as w:
            w.write(text("c", 1).encode())
            with mapped(path) as m:
                equal(names(m), {"a", "c"})
                box.sh("cd r; cat b > .git/config")
                try:
                    os.pread(w.fileno(), PAGE, 0)
                    check(False, "it was read while another text was mapped")
                except OSError as e:
                    equal(e.errno, errno.EBUSY)
                fd = os.open(path, os.O_WRONLY)
                equal(os.pwrite(fd, b"d", 15), 1)
                os.close(fd)
                drop_pages(m)
                equal(names(m), {"a", "c"})
            equal(os.pread(w.fileno(), PAGE, 0), text("d", 1).encode())
        equal(names(box.read("r/.git/config")), {"b", "d"})


def test_a_race_of_mappings(world):
    with world.sandbox() as box:
        path = make(box)
        p = subprocess.Popen(
            ["rsb-exec", "sh", "-c", "cd r; echo go; while [ ! -e stop ]; do for t in a b; do "
             "dd if=$t of=.git/config bs=1M conv=notrunc 2>/dev/null; done; done"],
            cwd=box.mount, env=world.env, stdout=subprocess.PIPE)
        equal(p.stdout.readline(), b"go\n")
        seen = {"busy": 0}
        for _ in range(harness.how_many(60, 200, 1000)):
            with contextlib.ExitStack() as stack:
                maps, shown = [], []
                for _ in range(3):
                    try:
                        maps.append(stack.enter_context(mapped(path)))
                    except OSError as e:
                        equal(e.errno, errno.EBUSY)
                        seen["busy"] += 1
                        continue
                    shown.append(bytes(maps[-1]))
                for m in maps:
                    drop_pages(m)
                equal([bytes(m) for m in maps], shown, "it changed")
                equal(len(set(shown)), 1, "two texts at one time")
                seen[shown[0]] = seen.get(shown[0], 0) + 1
        box.write("r/stop", b"")
        p.communicate(timeout=60)
        print(f"     {sorted(seen.values())} of two texts, of mixtures over there, and busy", flush=True)


harness.main(globals())
