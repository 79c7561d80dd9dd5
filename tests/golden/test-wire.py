#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-wire.py speaks up when it should: on copies of the tree's files that were tampered with."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PRINTER, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
FILES = ("PROTOCOL.md", "common/proto/limits.h", "tests/golden/wire.txt")


class Wire(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in FILES:
            (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.dir / name)
        self.printer = self.dir / "printer"
        self.tamper("")

    def tamper(self, command):
        """A printer whose table went through a command of sed."""
        self.printer.write_text(f"#!/bin/sh\n'{PRINTER}' \"$@\" | sed '{command}'\n")
        os.chmod(self.printer, 0o755)

    def edit(self, name, old, new):
        text = (self.dir / name).read_text()
        self.assertIn(old, text)
        (self.dir / name).write_text(text.replace(old, new, 1))

    def check(self, *options):
        run = subprocess.run(
            [sys.executable, "-B", ROOT / "tests/golden/check-wire.py", *options, self.printer,
             self.dir], text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        return run.returncode, run.stderr

    def test_accepts_what_is_there(self):
        self.assertEqual(self.check(), (0, ""))

    def test_refuses_a_changed_table_of_the_same_version(self):
        self.tamper("s/u64 fh /u64 handle /")
        for options in (), ("--update",):
            code, said = self.check(*options)
            self.assertNotEqual(code, 0)
            self.assertIn("RSB_PROTO_VERSION", said)

    def test_takes_a_changed_table_of_a_new_version_and_keeps_the_old_hash(self):
        old = [line for line in (self.dir / FILES[2]).read_text().splitlines()
               if line.startswith("hash ")]
        self.tamper("s/u64 fh /u64 handle /; s/^version [0-9]*,/version 99,/")
        self.assertNotEqual(self.check()[0], 0)
        self.assertEqual(self.check("--update")[0], 0)
        self.assertEqual(self.check(), (0, ""))
        text = (self.dir / FILES[2]).read_text()
        self.assertIn("hash 99 ", text)
        for line in old:
            self.assertIn(line, text)

    def test_refuses_a_golden_file_that_was_edited(self):
        self.edit("tests/golden/wire.txt", "message rsb_attr\n", "message rsb_attribute\n")
        self.assertIn("wire.txt", self.check()[1])

    def test_refuses_a_document_with_another_operation(self):
        self.edit("PROTOCOL.md", "| 1 | lookup |", "| 1 | look |")
        self.assertIn("PROTOCOL.md", self.check()[1])

    def test_refuses_a_document_with_another_limit(self):
        self.edit("common/proto/limits.h", "RSB_NAME_MAX 255u", "RSB_NAME_MAX 254u")
        self.assertIn("PROTOCOL.md", self.check()[1])

    def test_misses_the_marks_of_the_generated_parts(self):
        self.edit("PROTOCOL.md", "<!-- limits: end -->", "")
        self.assertIn("limits", self.check()[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
