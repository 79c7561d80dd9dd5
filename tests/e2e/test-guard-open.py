# SPDX-License-Identifier: MIT
"""What is mapped of a file that git reads is of one judged text, whatever is done to the file meanwhile."""

import mmap

import harness
from harness import equal

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


def names(m):
    return {m[at * PAGE + 15:at * PAGE + 16].decode() for at in range(len(m) // PAGE)}


def test_what_was_written_here_is_read_at_once(world):
    with world.sandbox() as box:
        path = make(box)
        with open(path, "r+b", buffering=0) as f:
            f.write(text("c", 1).encode())
            equal(names(box.read("r/.git/config")), {"a", "c"}, "before it is closed")


harness.main(globals())
