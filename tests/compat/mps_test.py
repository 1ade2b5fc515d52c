#!/usr/bin/env python3
"""How the compatibility suite looks after its MPS, with a script for nvidia-cuda-mps-control."""

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from lab import mps as lab

# As a daemon it is `sleep`; its one server is in the state that the file `state` says. No file: no answer.
CONTROL = """#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY/.." || exit 1
echo "$*" >>calls
if [ "$1" = -d ]; then
  sleep 100 & echo $! >"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
  echo ACTIVE >state
  exit 0
fi
read -r words
[ -e state ] || exit 1
case $words in
  get_server_list) echo 1234 ;;
  "get_server_status 1234") cat state ;;
  quit*) kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid")" ;;
esac
"""


class Restarts(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        (self.scratch / "bin").mkdir()
        control = self.scratch / "bin/nvidia-cuda-mps-control"
        control.write_text(CONTROL)
        control.chmod(0o755)
        for change in (
            mock.patch.dict(os.environ, PATH=f"{control.parent}:{os.environ['PATH']}"),
            mock.patch.multiple(lab, MPS_RECOVERS_S=0.2, MPS_ANSWERS_S=3),
        ):
            change.start()
            self.addCleanup(change.stop)
        self.mps = lab.Mps(self.scratch / "mps", self.scratch / "mps-log")
        self.mps.start()
        self.addCleanup(self.mps.stop)

    def pid(self):
        return int((self.scratch / "mps/nvidia-cuda-mps-control.pid").read_text())

    def test_a_server_that_is_well_is_left_alone(self):
        self.assertTrue(self.mps.serves())
        before = self.pid()
        self.mps.mend()
        self.assertEqual((self.pid(), self.mps.restarts), (before, 0))

    def test_a_server_that_stays_in_fault_is_replaced(self):
        (self.scratch / "state").write_text("FAULT\n")
        self.assertFalse(self.mps.serves())
        before = self.pid()
        self.mps.mend()
        self.assertNotEqual(self.pid(), before)
        self.assertEqual(self.mps.restarts, 1)
        self.assertTrue(self.mps.serves())

    def test_a_server_that_takes_no_client_is_replaced(self):
        """Its state says nothing of it."""
        self.mps.takes_a_client = lambda: self.mps.restarts > 0
        before = self.pid()
        self.mps.mend()
        self.assertEqual((self.pid(), self.mps.restarts), (before, 0))
        self.mps.mend(probe=True)
        self.assertNotEqual(self.pid(), before)
        self.assertEqual(self.mps.restarts, 1)

    def test_a_client_that_gets_no_context_is_seen(self):
        with mock.patch.object(lab, "PROBE", "import sys; sys.exit(3)"):
            self.assertFalse(self.mps.takes_a_client())
        with mock.patch.object(lab, "PROBE", "import os, sys; sys.exit('CUDA_MPS_PIPE_DIRECTORY' not in os.environ)"):
            self.assertTrue(self.mps.takes_a_client())
        with mock.patch.multiple(lab, PROBE="import time; time.sleep(60)", PROBE_S=0.3):
            self.assertFalse(self.mps.takes_a_client())

    def test_a_control_that_does_not_answer_is_ended(self):
        (self.scratch / "state").unlink()
        before = self.pid()
        self.mps.mend()
        self.assertFalse(lab.runs(before))
        self.assertTrue(self.mps.serves())


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
