#!/usr/bin/env python3
"""Each command that README, the pages of users, the manual and the tarball's file show is run by a test, or there is a
reason not to (tests/system/harness/pages.py)."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.system.harness import pages  # noqa: E402

COMMANDS = [(name, command) for name, text in pages.sources() for command in pages.commands_of(name, text)]


class Commands(unittest.TestCase):
    def test_each_is_run_or_there_is_a_reason(self):
        self.assertGreater(len(COMMANDS), 90)
        for name, command in COMMANDS:
            with self.subTest(page=name, command=command):
                self.assertTrue(pages.entry_of(name, command) or pages.reason_not_to_run(name, command))

    def test_the_lists_have_nothing_that_no_page_has(self):
        used = {pages.entry_of(*one) for one in COMMANDS}
        self.assertEqual([one for one in pages.TESTS if one not in used], [])
        for page, begins in pages.NOT_RUN:
            with self.subTest(page=page, command=begins):
                self.assertTrue([one for name, one in COMMANDS if name == page and one.startswith(begins)])
        for page, begins in pages.NO_COMMANDS:
            with self.subTest(page=page, block=begins):
                self.assertTrue(pages.block(page, begins))

    def test_each_test_asks_for_its_commands(self):
        for test in {test for _, _, test in pages.TESTS}:
            (file,) = (ROOT / "tests").glob(f"**/{test}_test.py")
            with self.subTest(test):
                self.assertTrue(f'pages.run_by("{test}"' in file.read_text())


class Reader(unittest.TestCase):
    def test_blocks(self):
        text = "x\n\n    $ a b  # it\n    1 c\n\n    $ d\n\ny\n```\n    e\n```\n"
        text += "    f \\\n      g |\n        h\n      out\n    i\n"
        self.assertEqual(pages.commands_of("page", text), ["a b", "d", "f g | h", "i"])

    def test_the_manual(self):
        text = ".Bd -literal -offset indent\na \\e\n    b\n\nc\n.Ed\nx\n.Dl d\n.Dl e\n.Sh F\n"
        self.assertEqual(pages.commands_of("page.1", pages.manual(text)), ["a b", "c", "d", "e"])

    def test_what_is_no_command(self):
        text = "    import json, socket\n    x\n\n.\n\n    y\n"
        self.assertEqual(pages.commands_of("io.gpuctl.7", text), ["y"])
        self.assertEqual(pages.commands_of("another", text), ["import json, socket", "x", "y"])

    def test_a_command_that_nobody_runs(self):
        self.assertIsNone(pages.entry_of("README", "rm it"))
        self.assertIsNone(pages.reason_not_to_run("README", "rm it"))
        self.assertIsNone(pages.entry_of("README", "scripts/test.sh"))


if __name__ == "__main__":
    unittest.main()
