# SPDX-License-Identifier: MIT
"""
What the sanitizers say about any process of a test, in the background too: reports go into files, which are looked
for at the end of each test. Processes without our environment have their place compiled in (tests/tools/sanitizer.c).
"""

import contextlib
import glob
import os
import re

ELSEWHERE = "/tmp/rsb-sanitizer"
# In a sandbox of rsb-local, of its process 1 and its sidecar; only root can read them.
IN_SANDBOX = f"ls {ELSEWHERE}.* 2>/dev/null && cat {ELSEWHERE}.* 2>&1 || :"
# In the log of rsb-local, of the monitor of a sandbox.
IN_LOG = re.compile(r"rsb-envd: process 1|Sanitizer:|runtime error:|^    #\d")
OPTIONS = ("ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


def is_in(program):
    """Whether program was built with one."""
    with open(program, "rb") as f:
        data = f.read()
    return b"__asan_init" in data or b"__tsan_init" in data


def in_log(text):
    return [line for line in text.splitlines() if IN_LOG.search(line)]


def reports():
    """Each report once, as text; meant to be called inside of watched()."""
    directory = os.environ["RSB_TEST_REPORTS"]
    found = []
    for name in sorted(glob.glob(f"{directory}/report*") + glob.glob(f"{ELSEWHERE}.*")):
        with open(name, encoding="utf-8", errors="replace") as f:
            found.append(f"{os.path.basename(name)}:\n{f.read()[:8000]}")
        os.unlink(name)
    return found


@contextlib.contextmanager
def watched(directory):
    """All programs started in it write their reports into directory."""
    before = dict(os.environ)
    os.environ["RSB_TEST_REPORTS"] = directory
    for name in OPTIONS:
        given = [os.environ[name]] if os.environ.get(name) else []
        os.environ[name] = ":".join(given + [f"log_path={directory}/report"])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
