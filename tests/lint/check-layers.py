#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes go downward only and in order, foreign headers have a home, nothing lies about."""

import fnmatch
import pathlib
import re

import tree as lint

TOP = {
    ".ci", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore",
    "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PROTOCOL.md", "README.md",
    "SECURITY.md", "common", "exec", "fuse", "man", "meson.build", "meson_options.txt",
    "packaging", "sidecar", "tests",
}

# The longest prefix of a file's path decides what it may include.
LAYERS = {
    "common/util": {"util"},
    "common/proto": {"util", "proto"},
    "common/link": {"util", "proto", "link"},
    "common/backend": {"util", "proto", "backend"},
    "common/keeper": {"util", "proto", "link", "backend", "keeper"},
    "fuse": {"util", "proto", "link", "backend", "keeper", "fuse"},
    "exec": {"util", "proto", "link", "backend", "keeper", "exec"},
    "sidecar": {"util", "proto", "sidecar"},
    "sidecar/envd": {"util", "proto", "sidecar", "sidecar/envd"},
    "sidecar/local": {"util", "proto", "sidecar", "sidecar/envd", "sidecar/local"},
    "tests": None,
}

# Where a floor's headers are; all but common's are named from the root.
FLOORS = {f: "common/" + f for f in ("util", "proto", "link", "backend", "keeper")}
FLOORS.update({f: f for f in ("fuse", "exec", "sidecar", "sidecar/envd", "sidecar/local",
                              "tests")})

# One of ours that not all of a layer may see: it brings a library that the sidecar does without.
NOT_FOR = {"util/json.h": "sidecar"}
UNLESS = {"util/json.h": ("sidecar/envd", "sidecar/local")}

# A foreign header: the patterns of its homes. Of each pattern, one file may include it.
HOMES = {
    "archive*.h": ["common/keeper/sync.c", "common/util/pack.c", "common/util/tar.c", "common/util/tarscan.c"],
    "curl/*.h": ["common/link/connect.c", "common/backend/http.c", "sidecar/local/proxy.c"],
    "ini.h": ["common/keeper/*.c"],
    "jansson.h": ["common/util/json.c"],
    "microhttpd.h": ["sidecar/local/*.c", "sidecar/envd/*.c"],
    "msgpack*": ["common/proto/codec.c"],
    "nettle/*.h": ["common/util/hash.c"],
    "zlib.h": ["common/util/gzip.c"],
    "zstd.h": ["common/proto/frame.c", "common/proto/zip.c"],
}
# The exception: libfuse is what fuse/ is about.
FREE = {"fuse_*.h": "fuse/", "fuse3/*": "fuse/", "linux/fuse.h": "fuse/"}

# What the C library and the kernel bring.
SYSTEM_DIRS = ("arpa/", "asm/", "linux/", "net/", "netinet/", "sanitizer/", "sys/")
SYSTEM = set("""
    assert ctype dirent dlfcn endian err errno fcntl fenv float fnmatch ftw getopt glob grp
    inttypes langinfo libgen limits link locale malloc math mntent mqueue netdb paths poll
    pthread pty pwd regex sched semaphore setjmp shadow signal spawn stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string strings syslog termios threads time
    uchar ucontext unistd utime utmp wchar wctype wordexp
    """.split())

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)', re.M)


def prefix_of(name, table):
    fits = [p for p in table if name == p or name.startswith(p + "/")]
    return max(fits, key=len, default=None)


def ours(tree, name, header):
    if ".." in header.split("/"):
        return "an include does not climb"
    floor = prefix_of(header, FLOORS)
    if name.startswith("tests/") and ((tree.root / name).parent / header).is_file():
        return None
    if floor is None or "/" not in header:
        return "name it by its floor, as in \"util/buf.h\""
    layer = prefix_of(name, LAYERS)
    allowed = LAYERS[layer]
    if allowed is not None and floor not in allowed:
        return f"{layer} does not stand on {floor}"
    if not (tree.root / FLOORS[floor] / header[len(floor) + 1:]).is_file():
        return "there is no such file"
    barred = NOT_FOR.get(header)
    if barred and name.startswith(barred + "/") and not prefix_of(name, UNLESS[header]):
        return f"not for {barred}"
    return None


def is_system(header):
    return header.startswith(SYSTEM_DIRS) or header.removesuffix(".h") in SYSTEM


def foreign(name, header, seen):
    if ".." in header.split("/"):
        return "an include does not climb"
    if name.startswith("tests/"):
        return None
    for pattern, place in FREE.items():
        if fnmatch.fnmatchcase(header, pattern):
            return None if name.startswith(place) else f"its home is {place}"
    for pattern, homes in HOMES.items():
        if not fnmatch.fnmatchcase(header, pattern):
            continue
        home = next((h for h in homes if fnmatch.fnmatchcase(name, h)
                     and pathlib.PurePath(name).parent == pathlib.PurePath(h).parent), None)
        if home is None:
            return "its home is " + " or ".join(homes)
        first = seen.setdefault((pattern, home), name)
        return None if first == name else f"its home is {first} already"
    return None if is_system(header) else "a foreign header without a home"


def rank(name, header, system):
    """The place of an include: own header, <system>, <third party>, ours."""
    if system is not None:
        return 1 if is_system(system) else 2
    own = "/" + name.removesuffix(".c") + ".h"
    return 0 if own.endswith("/" + header) else 3


def check(tree):
    for top in sorted({name.split("/")[0] for name in tree.names} - TOP):
        yield f"{top}: does not belong at the top of the tree"
    seen = {}
    for name in tree.names:
        if pathlib.PurePath(name).suffix not in {".c", ".h", ".def"}:
            continue
        if prefix_of(name, LAYERS) is None:
            yield f"{name}: C outside of every layer"
            continue
        last = 0
        for match in INCLUDE.finditer(tree.text(name) or ""):
            this = rank(name, *match.groups())
            if this < last:
                yield (f"{name}: {match.group(0).strip()}: comes too late "
                       "(own header, <system>, <third party>, ours)")
            last = max(last, this)
            if match.group(1) is not None:
                why = ours(tree, name, match.group(1))
            else:
                why = foreign(name, match.group(2), seen)
            if why:
                yield f"{name}: {match.group(0).strip()}: {why}"


if __name__ == "__main__":
    lint.main(__doc__, check)
