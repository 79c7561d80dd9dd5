#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-tidy has nothing to say about our programs."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess

import tree as lint

VERSION = 14  # another version has other checks
PLACES = ("common/", "exec/", "fuse/", "sidecar/")
# Callbacks, whose parameters others decided on; and lists of options for curl, each of which can fail.
GIVEN = re.compile(r"function '(?:(?:op_copy_file_range|on_request|on_upgrade|on_part)' exceeds recommended size"
                   r"|set_(?:body|options)' has cognitive complexity)")
EXTRA = ["--extra-arg=-Wno-unknown-warning-option"]  # the commands are gcc's
BATCH = 8  # files a process: it takes longer to start than to look at one


def find_tool():
    tool = shutil.which(f"clang-tidy-{VERSION}") or shutil.which("clang-tidy")
    if not tool:
        lint.skip(f"no clang-tidy {VERSION}")
    said = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)", said)
    if not found or int(found.group(1)) != VERSION:
        lint.skip(f"{tool} is not version {VERSION}")
    return tool


def compiled(build):
    """The paths, without links, that the build has commands for."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        return {os.path.realpath(os.path.join(c["directory"], c["file"])) for c in json.load(f)}


def findings(tool, tree, names):
    command = [tool, "--quiet", *EXTRA, *names]
    command += ["-p", tree.build] if tree.build else ["--", "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-Icommon"]
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    said = [line for line in done.stdout.split("\n")
            if re.search(r": (?:warning|error): ", line) and not GIVEN.search(line)]
    if done.returncode and not said:
        said.append(f"{names[0]}...: {tool} ended with {done.returncode}: {done.stderr.rstrip()}")
    return said


def check(tree):
    tool = find_tool()
    names = [n for n in tree.names if n.startswith(PLACES) and n.endswith(".c")]
    if tree.build:
        known = compiled(tree.build)
        names = [n for n in names if os.path.realpath(tree.root / n) in known]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = [names[i:i + BATCH] for i in range(0, len(names), BATCH)]
        for said in pool.map(lambda batch: findings(tool, tree, batch), batches):
            yield from said


if __name__ == "__main__":
    lint.main(__doc__, check)
