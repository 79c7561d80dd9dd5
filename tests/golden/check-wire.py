#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What goes over the wire changes only on purpose.

    check-wire.py [--update] PRINTER SOURCE-ROOT

Compares the table that PRINTER makes of structs.def and ops.def with tests/golden/wire.txt, and the generated parts of
PROTOCOL.md with the table and with limits.h. wire.txt keeps a hash of the table for each version: a table
that changed needs a new version in version.h, also when --update writes the files anew. (A version that
nobody has yet may change: delete its hash line first, which the review sees.)
"""

import hashlib
import pathlib
import re
import subprocess
import sys

HEAD = "# The wire. Printed from structs.def and ops.def; `meson compile update-wire` writes it anew.\n"


def split(text):
    """The hashes by version, and the table."""
    hashes, table = {}, []
    for line in text.splitlines(keepends=True):
        m = re.fullmatch(r"hash (\d+) ([0-9a-f]{16})\n", line)
        if m:
            hashes[int(m[1])] = m[2]
        elif not line.startswith("#"):
            table.append(line)
    return hashes, "".join(table)


def digest(table):
    return hashlib.sha256(table.encode()).hexdigest()[:16]


def limits(header):
    """The rows of limits.h as a table."""
    rows = ["| limit | value | of what |\n", "|---|---|---|\n"]
    for name, value, text in re.findall(
            r"^#define (RSB_\w+) +(\S.*?)(?: +/\* (.*?) \*/)?$", header, re.M):
        number = eval(re.sub(r"\(size_t\)|(?<=\d)u\b", "", value))  # our own header
        rows.append(f"| {name} | {number} | {text} |\n")
    return "".join(rows)


def replaced(document, name, body):
    """The document with another body between its two marks."""
    begin, end = f"<!-- {name}: generated -->\n", f"<!-- {name}: end -->\n"
    head, found, rest = document.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found or not found_end:
        sys.exit(f"PROTOCOL.md has no part between {begin.strip()} and {end.strip()}")
    return head + begin + body + end + tail


def main():
    update = sys.argv[1] == "--update"
    printer, root = sys.argv[-2], pathlib.Path(sys.argv[-1])
    run = lambda *args: subprocess.run([printer, *args], check=True, text=True,
                                       stdout=subprocess.PIPE).stdout
    table = run()
    version = int(re.match(r"version (\d+),", table)[1])
    wire = root / "tests/golden/wire.txt"
    hashes, old = split(wire.read_text() if wire.exists() else "")

    if hashes.get(version, digest(table)) != digest(table):
        sys.exit(f"the table of structs.def or ops.def changed, but version.h still says {version}: "
                 "peers with the old table would be taken for equal.\n"
                 "Raise RSB_PROTO_VERSION, then run `meson compile update-wire`.")
    hashes[version] = digest(table)
    new = HEAD + "".join(f"hash {v} {h}\n" for v, h in sorted(hashes.items())) + table

    document = root / "PROTOCOL.md"
    prose = replaced(document.read_text(), "operations", run("--markdown"))
    prose = replaced(prose, "limits", limits((root / "common/proto/limits.h").read_text()))

    stale = [(path, text) for path, text in ((wire, new), (document, prose))
             if not path.exists() or path.read_text() != text]
    for path, text in stale:
        if update:
            path.write_text(text)
        else:
            print(f"{path.name} does not say what structs.def, ops.def and limits.h say: "
                  "run `meson compile update-wire`", file=sys.stderr)
    return 0 if update else len(stale)


if __name__ == "__main__":
    sys.exit(main())
