#!/usr/bin/env python3
"""The phases of the compatibility suite's runner, with shell scripts for programs and a lab without a GPU."""

import contextlib
import os
import pathlib
import sys
import tempfile
import time
import unittest

import matrix
import table
from execute import Deadline
from head import Program

SCRIPTS = {
    "ordinary": "echo one; echo two >&2; exit 0",
    "other_output": 'echo "${IN_SLICE:-plain}"',
    "other_status": '[ -z "$IN_SLICE" ] || exit 3',
    "crashes": '[ -z "$IN_SLICE" ] || kill -SEGV $$',
    "storm_only": '[ "$IN_SLICE" != storm ] || echo evicted',
    "fails": "echo no memory >&2; exit 2",
    "unsteady": "echo $$",
    "absent": "echo needs another GPU >&2; exit 77",
    "fault_trap": "echo cudaErrorLaunchFailure; exit 4",
    "sticky": "echo cudaErrorAssert",
    "keeps": 'touch "$XDG_CACHE_HOME/it"',
}


class FakeMps:
    """Serves again as soon as it was seen to."""

    def __init__(self):
        self.mends = []

    def mend(self, probe=False):
        self.mends.append(probe)


class FakeLab:
    """Programs in a slice find IN_SLICE in their environment."""

    def __init__(self, scratch):
        self.mps, self.ended = None, []
        self.scratch, self.env, self.storm, self.dead = scratch, dict(os.environ), False, None

    @contextlib.contextmanager
    def mode(self, _):
        yield

    @contextlib.contextmanager
    def serving(self, storm=False):
        self.storm = storm
        yield

    def in_slice(self, command):
        return ["env", f"IN_SLICE={'storm' if self.storm else 'yes'}", *command]

    def end_in_slice(self, pid):
        self.ended.append(pid)

    def daemon_failure(self):
        return self.dead


class Phases(unittest.TestCase):
    jobs = 4

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        self.lab = FakeLab(self.scratch)

    def run_matrix(self, *names, runs=matrix.RUNS, seconds=100, builds=("both",)):
        """{(program, run): row}, of the last build."""
        cells = []
        for name in names:
            path = self.scratch / name
            path.write_text(f"#!/bin/sh\n{SCRIPTS[name]}\n")
            path.chmod(0o755)
            cells += [matrix.Cell(Program(name, path, "a test"), 0, build, path) for build in builds]
        self.matrix = matrix.Matrix(
            self.lab, cells, self.jobs, Deadline(seconds), matrix.empty(self.scratch / "failed")
        )
        self.matrix.run_mode("time-sliced", runs)
        return {(row.program, row.run): row for row in self.matrix.rows}

    def verdicts(self, rows, name):
        return [rows[name, kind].verdict for kind in ("plain", *matrix.RUNS) if (name, kind) in rows]

    def test_what_is_the_same_is_right(self):
        rows = self.run_matrix("ordinary", "fault_trap")
        for name in ("ordinary", "fault_trap"):
            self.assertEqual(self.verdicts(rows, name), ["right"] * 5)
        self.assertEqual(list((self.scratch / "failed").iterdir()), [])

    def test_what_differs_is_wrong(self):
        rows = self.run_matrix("other_output", "other_status", "crashes", "storm_only")
        self.assertIn("line 1: plain 'plain', got 'yes'", rows["other_output", "slice"].note)
        self.assertEqual(rows["other_status", "slice-cold"].note, "plain exit 0, got exit 3")
        self.assertEqual(rows["crashes", "storm"].note, "plain exit 0, got SIGSEGV")
        self.assertEqual(self.verdicts(rows, "storm_only"), ["right", "right", "right", "wrong", "wrong"])
        self.assertIn(" AND ", rows["crashes", "storm-pair"].note)
        self.assertEqual((self.scratch / "failed/time-sliced.slice.other_output.0.both.0.out").read_text(), "yes\n")

    def script(self, name, text):
        SCRIPTS[name] = text
        self.addCleanup(SCRIPTS.pop, name)

    def impatient(self):
        more, matrix.MORE_S = matrix.MORE_S, 4
        self.addCleanup(setattr, matrix, "MORE_S", more)

    def test_hangs_are_ended(self):
        self.script("hangs", '[ -z "$IN_SLICE" ] || { echo waits for X >"$GPUSLICE_DEBUG"; sleep 60; }')
        self.impatient()
        rows = self.run_matrix("hangs", runs=("slice",))
        self.assertRegex(rows["hangs", "slice"].note, "got timeout after .*; last in its log: waits for X")
        self.assertEqual(len(self.lab.ended), 1)  # by gpuctl kill, before it was killed

    def test_what_a_hang_reaches_is_run_again_and_said(self):
        """`reached` fails with an error of MPS when the other hangs, then does not; `poor` fails with it each time."""
        self.script("hangs", f'[ -z "$IN_SLICE" ] || {{ touch {self.scratch}/hangs-now; sleep 60; }}')
        error = "cudaErrorMpsServerNotReady: the MPS server is not ready"
        wait = f"while [ ! -e {self.scratch}/hangs-now ]; do sleep 0.02; done"
        self.script(
            "reached",
            f'[ -z "$IN_SLICE" ] || [ -e {self.scratch}/once ] || '
            f"{{ {wait}; touch {self.scratch}/once; echo {error}; }}",
        )
        self.script("poor", f'[ -z "$IN_SLICE" ] || {{ {wait}; echo {error}; }}')
        self.impatient()
        self.lab.mps = FakeMps()
        rows = self.run_matrix("hangs", "reached", "poor", "other_status", runs=("slice",))
        self.assertEqual(self.verdicts(rows, "hangs"), ["right", "wrong"])
        self.assertEqual(rows["hangs", "slice"].reached, "")
        self.assertEqual(self.verdicts(rows, "reached"), ["right", "right"])
        self.assertIn("cudaErrorMpsServerNotReady", rows["reached", "slice"].reached)
        self.assertEqual(rows["poor", "slice"].verdict, "wrong")
        self.assertIn("cudaErrorMpsServerNotReady", rows["poor", "slice"].reached)
        self.assertEqual(rows["other_status", "slice"].reached, "")
        self.assertEqual(self.lab.mps.mends, [True])
        said = table.report(self.matrix.rows)
        self.assertIn("reached by another's hang or crash, run again: 2, of these right: 1", said)
        self.assertFalse(table.all_right(self.matrix.rows))

    def test_nothing_starts_while_mps_does_not_serve(self):
        self.script("crashes_first", '[ -z "$IN_SLICE" ] || kill -SEGV $$')
        self.lab.mps = FakeMps()
        order = []
        self.lab.mps.mend = lambda probe: (order.append("mend"), time.sleep(0.3), order.append("serves"))
        in_slice = self.lab.in_slice
        self.lab.in_slice = lambda command: (order.append("start"), in_slice(command))[1]
        self.jobs = 1
        self.run_matrix("crashes_first", "ordinary", "keeps", runs=("slice",))
        self.assertEqual(order, ["start", "mend", "serves", "start", "start"])

    def test_what_says_nothing_is_not_counted(self):
        rows = self.run_matrix("fails", "unsteady", "absent")
        self.assertEqual(
            [self.verdicts(rows, name) for name in ("fails", "unsteady", "absent")],
            [["unsound"], ["unsound"], ["skipped"]],
        )
        self.assertEqual(rows["absent", "plain"].note, "needs another GPU")

    def test_programs_that_reach_others_are_alone(self):
        self.run_matrix("fault_trap", "sticky", "ordinary", runs=("slice",))
        self.assertEqual(self.matrix.alone, {"fault_trap", "sticky"})
        order = [row.program for row in self.matrix.rows if row.run == "slice"]
        self.assertEqual((order[0], sorted(order[1:])), ("ordinary", ["fault_trap", "sticky"]))
        self.assertEqual(
            sorted(row.program for row in self.matrix.rows if row.run == "plain"), ["fault_trap", "ordinary", "sticky"]
        )

    def test_what_plain_pairs_meet_too_is_not_counted(self):
        """`crowded` fails as one of two, plain or not; `ours` only in a slice; `garbled` is wrong, and no error says
        so."""
        crowd = f"""
            cd {self.scratch}
            mkdir first 2>/dev/null && first=1 || {{ busy=1; touch second; }}
            for i in $(seq 20); do [ -n "$first" ] && [ ! -e second ] || break; sleep 0.05; done
            [ -z "$first" ] || {{ [ ! -e second ] || busy=1; rm -rf first second; }}
            """
        refuse = '[ -z "$busy" ] || { echo cudaErrorDevicesUnavailable >&2; exit 2; }'
        self.script("crowded", crowd + refuse)
        self.script("ours", crowd + '[ -n "$IN_SLICE" ] || busy=; ' + refuse)
        self.script("garbled", crowd + '[ -z "$busy" ] || echo "${IN_SLICE:-plain}"')
        for name, verdict in (("crowded", "unsound"), ("ours", "wrong"), ("garbled", "wrong")):
            rows = self.run_matrix(name, runs=("storm-pair",))
            self.assertEqual(self.verdicts(rows, name), ["right", verdict], rows[name, "storm-pair"].note)
        rows = self.run_matrix("crowded", runs=("storm-pair",))
        self.assertIn("1 of 1 plain pairs are wrong in the same way: ", rows["crowded", "storm-pair"].note)

    def test_what_there_is_no_time_for_is_skipped(self):
        rows = self.run_matrix("ordinary", seconds=0)
        self.assertEqual(
            (rows["ordinary", "plain"].verdict, rows["ordinary", "plain"].note), ("skipped", matrix.NO_TIME)
        )

    def test_a_build_goes_through_all_runs_before_the_next(self):
        self.run_matrix("ordinary", runs=("storm",), builds=("rdc", "cubin", "both", "ptx"))
        found = [(row.build, row.run) for row in self.matrix.rows]
        self.assertEqual({build for build, _ in found[:4]}, {"both", "ptx"})
        self.assertEqual(found[4:], [(build, run) for build in ("cubin", "rdc") for run in ("plain", "storm")])

    def test_a_dead_daemon_is_wrong(self):
        self.lab.dead = "gpuctld ended with status 1"
        rows = self.run_matrix("ordinary", runs=("slice",))
        self.assertEqual(rows["gpuctld", "slice"].verdict, "wrong")

    def test_each_side_has_caches_of_its_own(self):
        self.run_matrix("keeps", runs=("slice-cold", "slice"))
        kept = sorted(path.relative_to(self.scratch / "kept").parts[1] for path in (self.scratch / "kept").rglob("it"))
        self.assertEqual(kept, ["plain", "slice"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
