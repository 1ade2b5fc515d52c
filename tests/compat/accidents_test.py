#!/usr/bin/env python3
"""Which programs are run again after an accident of another, and how those that hang are ended."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest

import execute
import lab
from accidents import Accident, is_accident, was_reached
from execute import Outcome

NOT_READY = "cudaGetDeviceCount: cudaErrorMpsServerNotReady"


def outcome(out="", status=1, began=10.0, wall_s=2.0, ended="by itself", err=""):
    return Outcome(status, out, err, wall_s, ended, began=began)


class Decision(unittest.TestCase):
    accident = Accident(began=11.0, until=20.0)

    def test_what_counts_as_an_accident(self):
        self.assertFalse(is_accident(outcome(status=0)))
        self.assertFalse(is_accident(outcome(status=3)))
        self.assertTrue(is_accident(outcome(status=-11)))
        self.assertTrue(is_accident(outcome(ended="timeout")))
        self.assertTrue(is_accident(outcome(ended="no time left")))

    def test_an_error_of_mps_during_an_accident(self):
        for text in (
            NOT_READY,
            "CUDA_ERROR_MPS_SERVER_NOT_READY",
            "cudaErrorDevicesUnavailable",
            "CUDA_ERROR_DEVICE_UNAVAILABLE",
            "all CUDA-capable device(s) is/are busy or unavailable",
        ):
            self.assertTrue(was_reached([outcome(text)], [self.accident]), text)
            self.assertTrue(was_reached([outcome(err=text)], [self.accident]), text)

    def test_other_errors_are_the_programs_own(self):
        for text in ("", "cudaErrorMemoryAllocation", "cudaErrorLaunchFailure"):
            self.assertFalse(was_reached([outcome(text)], [self.accident]), text)

    def test_the_times_must_meet(self):
        for began, wall_s, reached in (
            (10, 0.5, False),
            (10, 1.5, True),
            (15, 1, True),
            (19.9, 9, True),
            (20.1, 9, False),
        ):
            self.assertEqual(
                was_reached([outcome(NOT_READY, began=began, wall_s=wall_s)], [self.accident]), reached, (began, wall_s)
            )
        self.assertFalse(was_reached([outcome(NOT_READY)], []))

    def test_one_that_hung_or_crashed_itself_is_not(self):
        self.assertFalse(was_reached([outcome(NOT_READY, ended="timeout")], [self.accident]))
        self.assertFalse(was_reached([outcome(NOT_READY), outcome(status=-9)], [self.accident]))

    def test_any_of_its_runs_counts(self):
        self.assertTrue(was_reached([outcome(status=0), outcome(NOT_READY)], [self.accident]))


class Ends(unittest.TestCase):
    def test_a_hung_program_is_ended_by_gpuctl_before_it_is_killed(self):
        """A script for gpuctl notes which processes there still are; of two, the leader comes last."""
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as directory:
            gpuctl, calls = pathlib.Path(directory, "gpuctl"), pathlib.Path(directory, "calls")
            gpuctl.write_text(f'#!/bin/sh\nkill -0 "$2" && echo "$@" >>{calls}\nexit 1\n')
            gpuctl.chmod(0o755)
            here = types.SimpleNamespace(gpuctl_path=gpuctl, env=dict(os.environ))
            done = execute.run(
                ["sh", "-c", "sleep 60 & wait"],
                dict(os.environ),
                0.5,
                end=lambda pid: lab.LabOfModes.end_in_slice(here, pid),
            )
            self.assertEqual((done.ended, done.status), ("timeout", -9))
            said = [line.split() for line in calls.read_text().splitlines()]
            self.assertEqual([words[0] for words in said], ["kill", "kill"])
            self.assertEqual(said[1][1], str(done.pid))
            self.assertNotEqual(said[0][1], str(done.pid))

    def test_one_that_ends_is_left_alone(self):
        execute.run(["true"], dict(os.environ), 20, end=lambda pid: self.fail("it has ended"))

    def test_a_group_is_found(self):
        process = subprocess.Popen(
            ["sh", "-c", "sleep 60 & echo; wait"], start_new_session=True, stdout=subprocess.PIPE
        )
        try:
            process.stdout.readline()
            deadline = time.monotonic() + 10
            while len(lab.mps.group_of(process.pid)) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertEqual(len(lab.mps.group_of(process.pid)), 2)
            self.assertEqual(lab.mps.group_of(process.pid)[-1], process.pid)
        finally:
            execute.kill_group(process)
            process.wait()
            process.stdout.close()


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
