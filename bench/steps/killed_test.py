"""Tests of what is said of daemons that are killed."""

import unittest

from bench.steps.killed import WITH, WITHOUT, by_time_since, p99_by_time_since, rows


class KilledTest(unittest.TestCase):
    def test_medians_and_their_ratio(self):
        latencies = {WITHOUT: [90.0, 100.0, 200.0], WITH: [80.0, 110.0, 120.0]}
        rates = {WITHOUT: [10.0, 10.0, 10.0], WITH: [9.0, 9.5, 10.0]}
        said = {figure: (target, measured) for figure, target, measured in rows(latencies, rates, 0, 60, 132, 132)}
        self.assertEqual(said[f"LS p99, batch, while {WITHOUT}"][1], "100 us (90 to 200); 10.00 kernels/s")
        self.assertEqual(said[f"LS p99 while {WITH} / while {WITHOUT}"], ("<= 1.05", "1.100"))
        self.assertEqual(said[f"batch while {WITH} / while {WITHOUT}"][1], "0.950")
        self.assertEqual(said["SMs granted at most, as each daemon says before it is killed"], ("<= 132", "132"))

    def test_launches_by_the_time_since_the_latest_kill(self):
        ms = 1_000_000
        latencies_us = {5: 1, 11: 2, 59: 3, 61: 4, 300: 5, 511: 6}  # by when they were issued, ms
        launches = [
            {"issue_ns": at * ms, "complete_ns": at * ms + 1000 * latency} for at, latency in latencies_us.items()
        ]
        found = by_time_since([10 * ms, 510 * ms], launches)
        self.assertEqual(found, [[2, 3, 6], [4], [5]])
        self.assertEqual(
            p99_by_time_since([*found[:2], []]),
            ("LS p99 up to 50 ms after a kill; up to 200 ms; later", "", "6 us (n=3); 4 us (n=1); -"),
        )


if __name__ == "__main__":
    unittest.main()
