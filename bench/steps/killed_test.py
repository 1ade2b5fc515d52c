"""Tests of what is said of daemons that are killed."""

import unittest

from bench.steps.killed import WITH, WITHOUT, rows


class KilledTest(unittest.TestCase):
    def test_medians_and_their_ratio(self):
        latencies = {WITHOUT: [90.0, 100.0, 200.0], WITH: [80.0, 110.0, 120.0]}
        rates = {WITHOUT: [10.0, 10.0, 10.0], WITH: [9.0, 9.5, 10.0]}
        said = {figure: (target, measured) for figure, target, measured in rows(latencies, rates, 0, 60, 132, 132)}
        self.assertEqual(said[f"LS p99, batch, while {WITHOUT}"][1], "100 us (90 to 200); 10.00 kernels/s")
        self.assertEqual(said[f"LS p99 while {WITH} / while {WITHOUT}"], ("<= 1.05", "1.100"))
        self.assertEqual(said[f"batch while {WITH} / while {WITHOUT}"][1], "0.950")
        self.assertEqual(said["SMs granted at most, as each daemon says before it is killed"], ("<= 132", "132"))


if __name__ == "__main__":
    unittest.main()
