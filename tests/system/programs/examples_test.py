"""The examples that use PyTorch run in a slice, on the CPU. Without PyTorch this is skipped, and counted so."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from tests.system.harness import instance

ROOT = pathlib.Path(__file__).resolve().parents[3]


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


PYTHON = next((one for one in (sys.executable, "/usr/bin/python3") if os.path.exists(one) and has_torch(one)), None)


@unittest.skipIf(PYTHON is None, "no Python with torch (PyPI: torch)")
class Examples(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "ls")

    def printed(self, name, *options):
        """By an example in the slice."""
        self.env["PYTHONPATH"] = str(ROOT / "python")
        done = self.gpuctl("run", "--slice", "ls", PYTHON, ROOT / "examples" / name, "--tiny", *options)
        return done.stdout

    def test_a_training_learns(self):
        losses = re.findall(r"step \d+: loss (\S+)\n", self.printed("train.py", "--steps", 200))
        first, last = map(float, losses)
        self.assertLess(last, first)

    def test_a_server_answers(self):
        said = self.printed("serve.py", "--requests", 20, "--per-second", 1000)
        self.assertRegex(said, r"^20 requests: 50 % within \d+\.\d\d ms, 99 % within \d+\.\d\d ms\n$")


if __name__ == "__main__":
    instance.main()
