"""Tests of what is said of the papers' experiments, and of the sides beside which they run."""

import pathlib
import tempfile
import types
import unittest

from bench.corun.configurations import MANAGED, TIME_SLICED
from bench.lab.samples import read_samples
from bench.papers import torch_jobs
from bench.papers.experiments import EXPERIMENTS, MODES, NotHere, by_start, done_by, over
from bench.papers.kernels import EFFISHA, EXTENTS, FLEP, FRS, SMGUARD
from bench.papers.schedulers import durations_apart
from bench.papers.torch_applications import PROGRAM, WANTED, TorchApplication


def made(name):
    lab = types.SimpleNamespace(size=lambda real, rehearsal: real)
    return EXPERIMENTS[name](lab, None)


def said(rows):
    return {figure: measured for figure, _, measured in rows}


class ExperimentsTest(unittest.TestCase):
    def test_every_benchmark_has_a_size(self):
        self.assertEqual({*FLEP.values(), *FRS.values(), *EFFISHA.values(), *SMGUARD.values()} - set(EXTENTS), set())

    def test_every_side_is_in_a_mode_that_is_played(self):
        for name in EXPERIMENTS:
            sides = made(name).sides
            self.assertLessEqual({side.mode for side in sides}, set(MODES), name)
            self.assertEqual(len({side.name for side in sides}), len(sides), name)
            self.assertIn("MPS", [side.name for side in sides], name)
            self.assertTrue(any(side.mode == TIME_SLICED for side in sides), name)
        for name in ("flep8", "smguard"):
            self.assertTrue(any(side.mode == MANAGED for side in made(name).sides), name)

    def test_a_side_is_compared_with_another_in_the_same_start(self):
        found = {
            "MPS": {0: {"A_B": {"short": 10.0}, "A_C": {"short": 30.0}}, 1: {"A_B": {"short": 100.0}}},
            "ours": {0: {"A_B": {"short": 5.0}, "A_C": {"short": 10.0}}, 2: {"A_B": {"short": 1.0}}},
        }
        self.assertEqual(over(found, "MPS", "ours", "short"), ([2.5], {"A_B": 2.0, "A_C": 3.0}))
        self.assertEqual(by_start(found, "MPS", "short"), [20.0, 100.0])

    def test_sides_are_compared_by_the_pairs_that_all_have(self):
        found = {
            "MPS": {0: {"A_B": {"short": 10.0}, "A_C": {"short": 30.0}}},
            "ours": {0: {"A_B": {"short": 5.0}, "A_C": {"short": 10.0}}},
            "third": {0: {"A_B": {"short": 5.0}}, 1: {}},
            "not played": {},
            "no pair was in time": {0: {}},
        }
        self.assertEqual(over(found, "MPS", "ours", "short"), ([2.0], {"A_B": 2.0}))
        self.assertEqual(over({"MPS": {0: {}}, "ours": {0: {}}}, "MPS", "ours", "short"), ([], {}))

    def test_programs_count_as_alone_where_they_met_no_other(self):
        launches = [[(0.0, 2.0), (0.0, 6.0)], [(5.0, 7.0), (5.0, 8.0)], [(9.0, 9.5), (9.0, 11.0)]]
        self.assertEqual(durations_apart(launches, 12.0), [[2.0], [2.0], [0.5, 2.0]])
        self.assertEqual(durations_apart(launches, 10.0), [[2.0], [2.0], [0.5, 2.0]])
        late = [[(0.0, 2.0), (0.0, 1.0)], [(5.0, 12.5), (5.0, 6.0)]]
        self.assertEqual(durations_apart(late, 12.0), [[2.0], [1.0]])
        far_too_late = [[(0.0, 9.5)], [(5.0, 6.0)], [(9.0, 10.0)], [(11.0, 12.0)]]
        self.assertEqual(durations_apart(far_too_late, 13.0), [[], [], [], [1.0]])

    def test_rows_of_pairs(self):
        at = {"short": 2.0, "both": 10.0, "antt": 2.0, "stp": 1.0}
        found = {"MPS": {0: {"PF_MM": at}}, "gpuctl, hpf": {0: {"PF_MM": {**at, "short": 0.5, "both": 10.5}}}}
        rows = said(made("flep8").rows(found))
        self.assertTrue(rows["FLEP Figure 8, gpuctl, hpf: speed-up over MPS"].startswith("4.00 (4.00 to 4.00; n=1)"))
        self.assertTrue(rows["FLEP Figure 8, gpuctl, hpf: until both are done, over MPS"].startswith("1.050 "))

    def test_pairs_of_endless_programs_are_divided_among_the_starts(self):
        one = made("ffs")
        one.longs, one.shorts = ([types.SimpleNamespace(name=name) for name, _, _ in of] for of in one.wanted())
        played = []
        one.together = lambda long, short: played.append((long.name, short.name))
        for one.number in range(4):
            one.play(one.sides[0])
        self.assertEqual((len(played), len(set(played))), (28, 28))

    def test_what_is_done_by_a_time_counts_parts_of_launches(self):
        self.assertEqual(done_by([(0.0, 2.0), (0.0, 6.0)], 4.0), 1.5)
        self.assertEqual(done_by([(1.0, 2.0)], 9.0), 1)

    def test_rows_of_shares(self):
        found = {"MPS": {}, "gpuctl, ffs": {0: {"PF_MM": {"share": 0.66, "rate": 0.95}}}}
        rows = said(made("ffs").rows(found))
        self.assertTrue(rows["FLEP Figure 13, gpuctl, ffs: share of the heavier, 2:1"].startswith("0.66 "))
        self.assertEqual(len(rows), 2)

    def test_rows_of_orders(self):
        found = {"gpuctl, frs": {0: {"A": 1.0, "B": 3.0}, 1: {"A": 4.0, "B": 2.0}}, "MPS": {}}
        rows = said(made("frs").rows(found))
        self.assertTrue(rows["FRS Figure 4, gpuctl, frs: ANTT"].startswith("2.50 ("))
        self.assertTrue(rows["FRS Figure 4, gpuctl, frs: DNTT of means; by order"].startswith("0.00; 1.00 ("))
        self.assertEqual(rows["FRS Figure 3, gpuctl, frs: NTT"], "A 2.50, B 2.50")

    def test_jobs_of_pytorch_are_in_order_and_in_the_file_of_samples(self):
        done = []
        times = torch_jobs.periodic(lambda: done.append(0), 0, 10, 3)
        self.assertEqual(len(done), 3)
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, "samples")
            torch_jobs.write_samples(path, times)
            read = [(one["issue_ns"], one["complete_ns"]) for one in read_samples(path)]
        self.assertEqual(read, times)
        self.assertEqual([instant for pair in read for instant in pair], sorted(i for pair in times for i in pair))

    def test_programs_of_pytorch(self):
        self.assertEqual({job for _, _, job in WANTED}, set(torch_jobs.JOBS))
        command = TorchApplication("sort", "sort", (), 7).command(None, "FILE", (50, 3), (), "last")
        self.assertEqual(command[1:5], [PROGRAM, "sort", "--repeats", 7])
        self.assertTrue(PROGRAM.exists())
        lab = types.SimpleNamespace(size=lambda real, rehearsal: real, software=True)
        with self.assertRaises(NotHere):
            list(EXPERIMENTS["torch"](lab, None).prepare())

    def test_rows_of_effisha(self):
        found = {
            "MPS": {0: {"ntt": {"A": 4.0, "B": 4.0}, "until": 10.0}},
            "gpuctl, piv, group": {0: {"ntt": {"A": 1.0, "B": 2.0}, "until": 11.0}},
        }
        rows = said(made("effisha").rows(found))
        self.assertTrue(rows["EffiSha Figure 14, gpuctl, piv, group: mean NTT"].startswith("1.50 "))
        self.assertTrue(rows["EffiSha Figure 15, gpuctl, piv, group: STP"].startswith("1.50 "))
        self.assertTrue(
            rows["EffiSha Figure 12, gpuctl, piv, group: until all are done, over MPS"].startswith("1.100 ")
        )


if __name__ == "__main__":
    unittest.main()
