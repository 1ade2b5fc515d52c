"""Tests of what Nsight Compute says of issue slots."""

import unittest

from bench.steps.issue_slots import ISSUED, TIME, mean_by_time, profiled, rows

HEAD = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'


def line(launch, metric, value):
    return f'"{launch}","7","a(int, float)","Command line profiler metrics","{metric}","x","{value}"'


TEXT = "\n".join(
    [
        "==PROF== Connected to process 7",
        "some words of the program",
        HEAD,
        line(0, ISSUED, "40.5"),
        line(0, TIME, "1,000,000"),
        line(1, ISSUED, "80"),
        line(1, TIME, "3000000"),
        line(2, ISSUED, "99"),
        "==PROF== Disconnected from process 7",
    ]
)


class IssueSlotsTest(unittest.TestCase):
    def test_reads_launches_that_are_told_whole(self):
        self.assertEqual(profiled(TEXT), [(1e6, 40.5), (3e6, 80.0)])
        self.assertEqual(profiled("==ERROR== ERR_NVGPUCTRPERM"), [])

    def test_means_are_by_time(self):
        self.assertEqual(mean_by_time([(1, 40), (3, 80)]), 70)

    def test_rows(self):
        said = list(rows({"FDTD3d": [(4e6, 30.0), (4e6, 30.0)], "lavaMD": [(2e6, 90.0), (2e6, 90.0)]}, 2))
        self.assertEqual(said[0][1:], ("27.5 %; 8.821 ms", "30.0 %; 4.000 ms"))
        self.assertEqual(said[2][1:], ("FDTD3d, particleFilter, tpacf", "FDTD3d"))


if __name__ == "__main__":
    unittest.main()
