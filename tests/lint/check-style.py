#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rules of style that a program can hold: sizes, first lines, guards, marks."""

import pathlib
import re

import tree as lint

FILE_LINES = 500
FUNCTION_LINES = 60
COLUMNS = 100
SPDX = "/* SPDX-License-Identifier: MIT */"

# In pieces, as this file obeys them too.
MARKS = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK")) + r")\b")
PLACES = re.compile(r"(?<![\w.~}-])/(?:wo" r"rk/(?:main|shared|wt)|fa" r"rm/\w+)\b")
OWNED = re.compile(r"\bRSB_CLEANUP\(|\brsb_auto[a-z]+\b")
# An object, not a function, that is neither constant nor one a thread.
MUTABLE = re.compile(r"^[ \t]*static (?!const\b|inline\b|_Thread_local\b|__thread\b)"
                     r"(?!.*\bconst \w+(?:\[|\s*=|;))[^()]*(?:=|;|\{)", re.M)
MAY_CHANGE = {"common/util/log.c", "common/util/log.h"}  # the sink; the rate limit of a place
GOTO = re.compile(r"\bgoto\b")
SCRIPT = re.compile(r"#!.*\b(?:python3?|sh|bash|dash)\b")
SCRIPT_SUFFIXES = {".py", ".sh"}
TABLES = {".def"}  # formatted by hand


def is_long(name, lines):
    if len(lines) > FILE_LINES:
        yield f"{name}: {len(lines)} lines, over {FILE_LINES}: find the second noun"


def check_any(name, lines):
    for i, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield f"{name}:{i}: blanks at the end of the line"
        mark = MARKS.search(line)
        if mark:
            yield f"{name}:{i}: {mark.group(0)} says that it is not done"
        place = PLACES.search(line)
        if place:
            yield f"{name}:{i}: {place.group(0)} is a directory of one machine"
    if lines and lines[-1] == "":
        yield f"{name}: blank lines at the end of the file"


def functions(lines):
    """(number of the first line of the body, the lines of the body) of each function."""
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i + 1
        elif line == "}" and start is not None:
            yield start + 1, lines[start:i]
            start = None


def check_code(name, text):
    """text has neither comments nor strings."""
    lines = text.split("\n")
    for i, line in enumerate(lines, 1):
        if "//" in line:
            yield f"{name}:{i}: comments are /* */"
    for start, body in functions(lines):
        if len(body) > FUNCTION_LINES:
            yield f"{name}:{start}: a function of {len(body)} lines, over {FUNCTION_LINES}"
        code = "\n".join(body)
        if OWNED.search(code) and GOTO.search(code):
            yield f"{name}:{start}: goto beside a cleanup variable"


def check_statics(name, text):
    if name.startswith("tests/") or name in MAY_CHANGE:
        return
    for match in MUTABLE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{name}:{line}: something static that changes"


def check_width(name, lines, bare):
    """Of code, clang-format decides; it leaves comments alone."""
    for i, (line, code) in enumerate(zip(lines, bare), 1):
        if len(line.expandtabs(8)) > COLUMNS >= len(code.rstrip().expandtabs(8)):
            yield f"{name}:{i}: a comment wider than {COLUMNS} columns"


def check_guard(name, text, seen):
    stem = re.sub(r"\W", "_", pathlib.PurePath(name).stem).upper()
    match = re.match(r"/\*.*?\*/\n#ifndef (\w+)\n#define (\w+)\n", text)
    if not match or match.group(1) != match.group(2) or not text.rstrip().endswith("#endif"):
        yield f"{name}: no header guard from the second line to the last"
        return
    guard = match.group(1)
    if not re.fullmatch(rf"RSB_(?:[A-Z0-9]+_)*{stem}_H", guard):
        yield f"{name}: the guard {guard} is not RSB_..{stem}_H"
    first = seen.setdefault(guard, name)
    if first != name:
        yield f"{name}: the guard {guard} is that of {first}"


def check_c(name, text, lines, guards):
    if not text.startswith(SPDX + "\n"):
        yield f"{name}:1: the first line is {SPDX}"
    yield from is_long(name, lines)
    if pathlib.PurePath(name).suffix in TABLES:
        return
    code = lint.code_only(text)
    yield from check_code(name, code)
    yield from check_statics(name, code)
    yield from check_width(name, lines, lint.code_only(text, strings=True).split("\n"))
    if name.endswith(".h"):
        yield from check_guard(name, text, guards)


def check(tree):
    guards = {}
    for name in tree.names:
        text = tree.text(name)
        if text is None or "/corpus/" in name:
            continue
        lines = text.removesuffix("\n").split("\n")
        yield from check_any(name, lines)
        if pathlib.PurePath(name).suffix in lint.C_SUFFIXES | TABLES:
            yield from check_c(name, text, lines, guards)
        elif pathlib.PurePath(name).suffix in SCRIPT_SUFFIXES or SCRIPT.match(lines[0]):
            yield from is_long(name, lines)


if __name__ == "__main__":
    lint.main(__doc__, check)
