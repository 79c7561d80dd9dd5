#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs, their help, the manual pages and the README know the same verbs, options and settings."""

import re

import tree as lint

VERB = re.compile(r"const struct rsb_verb rsb_verb_\w+ = \{(.*?)\n\};", re.S)
TABLE = re.compile(r"static const struct option (\w+)\[\] = \{(.*?)\};", re.S)
OPTION = re.compile(r'\{ "([a-z-]+)", \w+, NULL, (?:\'(\w)\'|\w+) \}')
SETTING = re.compile(r'^\t\{ "(\w+)", "(\w+)", (\w+), ([A-Z_| 0]+), [^,]+, (?:"([^"]*)"|\w+),', re.M)
# A program: where its table of options is, its help, its page.
PROGRAMS = [("exec/exec.c", "exec/exec.c", "man/rsb-exec.1"),
            ("fuse/options.c", "fuse/main.c", "man/rsb-mount.8"),
            ("sidecar/local/hostopt.c", "sidecar/local/hostopt.c", "man/rsb-local.8")]


def strings(text):
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def text(tree, name):
    return tree.text(name) or "" if name in tree.names else ""


def page(tree, name):
    return text(tree, name).replace("\\-", "-").replace(" Ns ", "")


def items(text):
    """What .It lines of a page have behind them, up to the next .It."""
    return re.split(r"^\.It ", text, flags=re.M)[1:]


def in_page(part, long, short):
    return f"-{long}" in part or bool(short) and re.search(rf"\bFl {short}\b", part)


def check_verbs(tree, man):
    verbs = {}
    for name in tree.names:
        if not re.fullmatch(r"exec/cmd-[a-z]+\.c", name):
            continue
        text = tree.text(name)
        for body in VERB.findall(text):
            verb = re.search(r'\.name = "(\w+)"', body).group(1)
            options = re.search(r"\.options = (\w+)", body)
            tables = dict(TABLE.findall(text))
            verbs[verb] = (name, body, OPTION.findall(tables[options.group(1)] if options else ""))
    for verb, (name, body, options) in sorted(verbs.items()):
        part = next((i for i in items(man) if re.match(rf"Cm {verb}\b", i)), None)
        if part is None:
            yield f"man/rsb.1: the verb {verb} is missing"
            continue
        for long, short in options:
            if f"--{long}" not in strings(body):
                yield f"{name}: --{long} is not in the help of {verb}"
            if not in_page(part.split("\n")[0], long, short):
                yield f"man/rsb.1: --{long} of {verb} is missing"
        for long in re.findall(r"--([a-z-]+)", strings(body)):
            if long not in dict(options):
                yield f"{name}: {verb} has no --{long}"
    for verb in re.findall(r"\brsb ([a-z]+)\b", "\n".join(re.findall(r"`([^`\n]*)`", tree.text("README.md") or ""))):
        if verb not in verbs:
            yield f"README.md: there is no verb {verb}"


def check_programs(tree):
    for where, helps, manual in PROGRAMS:
        if where not in tree.names or helps not in tree.names:
            continue
        table = TABLE.search(tree.text(where))
        for long, _ in OPTION.findall(table.group(2)):
            if f"--{long}" not in strings(tree.text(helps)):
                yield f"{helps}: --{long} is not in the help"
            if f"-{long}" not in page(tree, manual):
                yield f"{manual}: --{long} is missing"


def check_settings(tree):
    sections = dict(re.findall(r"^\.Ss \[(\w+)\]\n(.*?)(?=^\.S[sh] )", page(tree, "man/rsb.conf.5"), re.M | re.S))
    known = set()
    for section, key, kind, flags, value in SETTING.findall(tree.text("common/keeper/setting.c")):
        if "ENV_ONLY" in flags:
            continue
        known.add((section, key))
        item = next((i for i in items(sections.get(section, "")) if re.match(rf"Ar {key}\b", i)), None)
        if item is None:
            yield f"man/rsb.conf.5: {section}.{key} is missing"
        elif kind != "LIST" and value not in ("", "0") and not item.startswith(f"Ar {key} No = {value}\n"):
            yield f"man/rsb.conf.5: {section}.{key} does not say that {value} is its default"
    for section, text in sections.items():
        for item in items(text):
            key = re.match(r"Ar (\w+)", item).group(1)
            if (section, key) not in known:
                yield f"man/rsb.conf.5: there is no {section}.{key}"


def check_mount_words(tree):
    """Words of rsb-mount's -o."""
    for word in re.findall(r'\{ "(\w+)", &o->\w+, \w+ \}', tree.text("fuse/options.c")):
        if not re.search(rf"\b{word}\b", strings(text(tree, "fuse/main.c"))):
            yield f"fuse/main.c: {word} is not in the help"
        if not re.search(rf"^\.It Cm (?:.* )?{word}\b", page(tree, "man/rsb-mount.8"), re.M):
            yield f"man/rsb-mount.8: {word} is missing"


def check_status(tree, man):
    """What the daemon counts is explained."""
    tables = re.findall(r'struct number numbers\[\] = \{(.*?)\};.*?set_numbers\(json, "(\w+)"', tree.text("fuse/status.c"), re.S)
    for table, group in tables:
        for key in re.findall(r'\{ "(\w+)",', table):
            if not re.search(rf"^\.It .*\b{group}\.{key}\b", man, re.M):
                yield f"man/rsb.1: the status {group}.{key} is missing"


def check(tree):
    if "fuse/options.c" in tree.names:
        yield from check_mount_words(tree)
    if "fuse/status.c" in tree.names:
        yield from check_status(tree, page(tree, "man/rsb.1"))
    if "man/rsb.1" in tree.names:
        yield from check_verbs(tree, page(tree, "man/rsb.1"))
    yield from check_programs(tree)
    if "common/keeper/setting.c" in tree.names:
        yield from check_settings(tree)


if __name__ == "__main__":
    lint.main(__doc__, check)
