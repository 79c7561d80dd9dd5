# SPDX-License-Identifier: MIT
"""Files of a repository as git itself would never write them: an index, and a list of packs (gitformat-index(5), gitformat-pack(5))."""

import hashlib
import struct


def _number(n):
    """An offset as git packs it in a name of version 4."""
    out = [n & 0x7f]
    while n := n >> 7:
        n -= 1
        out.insert(0, 0x80 | (n & 0x7f))
    return bytes(out)


def _entries(names, blob, version):
    before, at = b"", []
    text = b""
    for name in names:
        name = name.encode()
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + bytes.fromhex(blob)
        entry += struct.pack(">H", min(len(name), 0xfff))
        if version == 4:
            entry += _number(len(before)) + name + b"\0"
        else:
            entry += name + b"\0"
            entry += b"\0" * (-len(entry) % 8)
        at.append(12 + len(text))
        text += entry
        before = name
    return text, at + [12 + len(text)]


def _extension(name, data):
    return name + struct.pack(">I", len(data)) + data


def index(names, blob, version=2, link=None, threads=None):
    """With entries of one blob; link: the id of a shared index; threads: names that a second thread finds instead."""
    digest = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    text, at = _entries(names, blob, version)
    text = b"DIRC" + struct.pack(">2I", version, len(names)) + text
    rest = b""
    if link:
        nothing = struct.pack(">2IQI", 0, 1, 0, 0)  # deleted, replaced: a bitmap without a bit
        rest += _extension(b"link", bytes.fromhex(link) + 2 * nothing)
    if threads:
        hidden, _ = _entries(threads, blob, version)
        rest += _extension(b"ZZZZ", hidden)
        n = len(names) - len(threads)
        table = struct.pack(">5I", 1, at[0], n, at[-1] + 8, len(threads))
        rest += _extension(b"IEOT", table)
        heads = digest(rest[:8] + rest[8 + len(hidden):16 + len(hidden)]).digest()
        rest += _extension(b"EOIE", struct.pack(">I", at[-1]) + heads)
    text += rest
    return text + digest(text).digest()


def packs(text, name):
    """The same list, of one pack, which has another name."""
    n = text[6]
    table = [struct.unpack_from(">4sQ", text, 12 + 12 * i) for i in range(n + 1)]
    chunks = []
    for (kind, at), (_, end) in zip(table, table[1:]):
        data = text[at:end]
        if kind == b"PNAM":
            data = name.encode() + b"\0"
            data += b"\0" * (-len(data) % 4)
        chunks.append((kind, data))
    at = 12 + 12 * (n + 1)
    out = text[:12]
    for kind, data in chunks:
        out += struct.pack(">4sQ", kind, at)
        at += len(data)
    out += struct.pack(">4sQ", b"\0" * 4, at) + b"".join(data for _, data in chunks)
    return out + hashlib.sha1(out).digest()
