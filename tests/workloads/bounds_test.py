#!/usr/bin/env python3
"""What gpuctl simulate refuses: bounds_test.py GPUCTL."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

GPUCTL = sys.argv.pop()
WORKLOAD = """
[device]
capsm = 4
[[application]]
name = "one"
alone_ms = 1
repeat = 1000000000
"""


class Bounds(unittest.TestCase):
    def test_more_launches_than_a_run_may_have_are_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            workload = pathlib.Path(directory) / "w.toml"
            workload.write_text(WORKLOAD)
            command = [GPUCTL, "simulate", workload, "--policy", "fcfs,frs"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^gpuctl: \S+/w.toml: fcfs: more than 2000000 launches in one run: .*\n$")


if __name__ == "__main__":
    unittest.main()
