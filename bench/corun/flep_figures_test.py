#!/usr/bin/env python3
"""Tests of the figures of FLEP's pairs."""

import unittest

from bench.corun import flep_figures


def one_round(configuration, **short_ms):
    return {
        "configuration": configuration,
        "round": 0,
        "pairs": {pair: {"short_ms": value, "both_ms": 10.0} for pair, value in short_ms.items()},
    }


class FlepFigures(unittest.TestCase):
    def setUp(self):
        self.points = flep_figures.points(
            [
                one_round("mps", A_B=8.0, A_C=6.0),
                one_round("mps", A_B=10.0, A_C=6.0),
                one_round("mps", A_B=9.0),
                one_round("ours-hpf", A_B=1.0, A_C=2.0),
                one_round("mps-stream", A_B=3.0),
            ]
        )

    def test_points(self):
        self.assertEqual(
            self.points["mps"]["A_B"]["short_ms"], {"median": 9.0, "least": 8.0, "greatest": 10.0, "rounds": 3}
        )
        self.assertEqual(
            [self.points[name]["A_B"]["speed_up"] for name in ("mps", "ours-hpf", "mps-stream")], [1, 9, 3]
        )
        self.assertEqual(self.points["ours-hpf"]["A_C"]["speed_up"], 3)

    def test_the_mean_is_that_of_the_pairs_that_all_have(self):
        rows = flep_figures.lines({"points": self.points, "alone_ms": {"short": {"B": 0.5, "C": 0.6}}})
        self.assertEqual(rows[1], ["A_B", "0.500", "9.000 (1.0)", "1.000 (9.0)", "3.000 (3.0)"])
        self.assertEqual(rows[2], ["mean speed-up over mps of 1 pairs", "", "1.00", "9.00", "3.00"])

    def test_without_the_base(self):
        points = flep_figures.points([one_round("ours-hpf", A_B=1.0)])
        self.assertIsNone(points["ours-hpf"]["A_B"]["speed_up"])
        self.assertEqual(
            flep_figures.lines({"points": points, "alone_ms": {"short": {"B": 0.5}}})[1], ["A_B", "0.500", "1.000"]
        )


if __name__ == "__main__":
    unittest.main()
