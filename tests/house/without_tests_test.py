#!/usr/bin/env python3
"""The project can be set up without its tests: without_tests_test.py MESON SOURCE_ROOT TOOLKIT_ROOT."""

import subprocess
import sys
import tempfile
import unittest


class WithoutTests(unittest.TestCase):
    def test_it_is_set_up(self):
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            done = subprocess.run(
                [meson, "setup", scratch, root, "-Dtests=false", f"-Dtoolkit_root={toolkit}"],
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])


if __name__ == "__main__":
    meson, root, toolkit = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
