#!/usr/bin/env python3
"""Tests of the order of the runs, and of runs that are refused, fail or find no time, with a stage that only
records.
"""

import contextlib
import pathlib
import tempfile
import types
import unittest

from bench.corun.configurations import CONFIGURATIONS
from bench.corun.results import Results
from bench.corun.rounds import Rounds
from bench.corun.stage import Refused
from bench.corun.workloads import BATCH, LS

CHOSEN = [CONFIGURATIONS[name] for name in ("alone", "mps", "ours-strict")]


class FakeStage:
    software = True
    corun_kernels = "corun-kernels"

    def __init__(self):
        self.played = []
        self.starts = 0
        self.refuses = self.fails = ""

    @contextlib.contextmanager
    def configured(self, configuration, reserve):
        if configuration.name == self.refuses:
            raise Refused("not known")
        self.name = configuration.name
        yield None, None

    @contextlib.contextmanager
    def programs(self, wanted, limit_s):
        self.starts += 1
        yield [command[1] for _, _, command in wanted]

    def change(self, configuration, reserve, among):
        self.name = configuration.name

    def usage(self):
        return {}

    def play(self, members, settle_s, seconds, seed):
        if self.name == self.fails:
            raise RuntimeError("it ended")
        self.played.append((self.name, seed // 100, tuple(members)))
        report = {"count": 1, "unserved": 0, "p50_us": 1.0, "p99_us": 2.0, "rate": 3.0}
        return [report for _ in members]


class RoundsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.stage = FakeStage()
        configurations = {
            chosen.name: {"description": "", "kind": chosen.kind, "mode": chosen.mode}
            for chosen in CONFIGURATIONS.values()
        }
        self.results = Results(pathlib.Path(directory.name) / "corun.json", {"configurations": configurations})

    def run_rounds(self, batches=("compute-100us",), chosen=CHOSEN, **options):
        given = {
            "rounds": 2,
            "quick": False,
            "settle": 0,
            "seconds": 1,
            "limit_s": 1000,
            "primed_in": None,
            "live": False,
            **options,
        }
        rounds = Rounds(self.stage, self.results, types.SimpleNamespace(**given), {}, lambda *_: None)
        rounds.run([(LS["short"], BATCH[name]) for name in batches], chosen)

    def order(self):
        return [(name, number) for name, number, _ in self.stage.played]

    def test_by_turns(self):
        self.run_rounds()
        self.assertEqual(
            self.order(), [(name, number) for number in (0, 1) for name in ("alone", "alone", "mps", "ours-strict")]
        )
        self.assertEqual(self.stage.played[0][2], ("ls",))
        self.assertEqual(self.stage.played[1][2], ("batch",))
        self.assertEqual(self.stage.played[2][2], ("ls", "batch"))
        self.assertEqual(self.stage.starts, 8)

    def test_quick(self):
        self.run_rounds(quick=True)
        self.assertEqual(
            self.order(), [(name, number) for name in ("alone", "alone", "mps", "ours-strict") for number in (0, 1)]
        )
        self.assertEqual(self.stage.starts, 4)

    def test_live_has_one_start_for_what_settings_change_in_another_order_each_round(self):
        names = ("mps", "ours-priority", "ours-active", "isolated", "isolated-priority")
        self.run_rounds(chosen=[CONFIGURATIONS[name] for name in names], live=True, quick=True)
        self.assertEqual(
            self.order(),
            [("mps", 0), ("mps", 1)]
            + [("ours-priority", 0), ("ours-active", 0), ("ours-active", 1), ("ours-priority", 1)]
            + [("isolated", 0), ("isolated-priority", 0), ("isolated-priority", 1), ("isolated", 1)],
        )
        self.assertEqual(self.stage.starts, 3)

    def test_live_begins_with_ls_alone_where_that_is_to_be_learnt(self):
        self.run_rounds(chosen=[CONFIGURATIONS[name] for name in ("isolated-2x", "isolated")], live=True, rounds=1)
        self.assertEqual([len(members) for _, _, members in self.stage.played], [1, 2, 2])
        self.assertEqual(len(self.results.data["runs"]), 2)

    def test_live_names_what_failed(self):
        self.stage.fails = "ours-active"
        self.run_rounds(
            chosen=[CONFIGURATIONS[name] for name in ("ours-priority", "ours-active")], live=True, quick=True
        )
        self.assertEqual(self.order(), [("ours-priority", 0)])
        self.assertEqual(len(self.results.data["missing"]), 3)

    def test_different_batch_programs_together(self):
        self.run_rounds(batches=("two",), rounds=1)
        self.assertEqual([len(members) for _, _, members in self.stage.played], [1, 2, 3, 3])

    def test_alone_is_measured_once_for_all_cells(self):
        self.run_rounds(batches=("compute-100us", "eight"), rounds=1)
        alone = [members for name, _, members in self.stage.played if name == "alone"]
        self.assertEqual(alone, [("ls",), ("batch",), ("batch",) * 8])
        self.assertEqual(len(self.results.data["cells"]), 2)

    def test_refused(self):
        self.stage.refuses = "ours-strict"
        self.run_rounds()
        self.assertNotIn("ours-strict", dict(self.order()))
        self.assertEqual(
            [(entry["round"], entry["reason"], entry["refused"]) for entry in self.results.data["missing"]],
            [(0, "not known", True), (1, "not known", True)],
        )

    def test_a_failure_is_noted_and_the_next_goes_on(self):
        self.stage.fails = "mps"
        self.run_rounds(quick=True)
        self.assertIn(("ours-strict", 1), self.order())
        self.assertEqual(
            [(entry["configuration"], entry["round"], entry["reason"]) for entry in self.results.data["missing"]],
            [("mps", 0, "RuntimeError: it ended"), ("mps", 1, "RuntimeError: it ended")],
        )

    def test_no_time(self):
        self.run_rounds(limit_s=0)
        self.assertEqual(self.stage.played, [])
        self.assertEqual({entry["reason"] for entry in self.results.data["missing"]}, {"no time left"})
        self.assertEqual(len(self.results.data["missing"]), 8)

    def test_priming_is_not_measured(self):
        self.run_rounds(primed_in=CONFIGURATIONS["ours-strict"], rounds=1)
        self.assertEqual(self.order()[0], ("ours-strict", 0))
        self.assertEqual(len(self.stage.played), 5)
        self.assertEqual(len(self.results.data["runs"]), 4)


if __name__ == "__main__":
    unittest.main()
