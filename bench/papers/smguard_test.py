"""Tests of what is said of SMGuard's pairs."""

import unittest

from bench.papers.smguard import MPS, PRIORITY, STREAM_PRIORITIES, later, reserve_row, rows


def at(short, antt, stp, spread=0.5):
    """summary() of a pair with three repetitions."""
    times = (short - spread, short, short + spread)
    return {"short": short, "antt": antt, "stp": stp, "repetitions": [((0, 50), (1, 1 + time)) for time in times]}


class SmguardTest(unittest.TestCase):
    def test_rows_of_the_figures(self):
        found = {
            MPS: {("bs", "nn"): at(12.0, 6, 1.2), ("md5", "nn"): at(40.0, 8, 1.0)},
            STREAM_PRIORITIES: {("bs", "nn"): at(2.0, 1.5, 1.6), ("md5", "nn"): at(2.0, 1.5, 1.6)},
            PRIORITY: {("bs", "nn"): at(1.0, 1.2, 1.8), ("md5", "nn"): at(4.0, 2, 1.4), ("pl", "nn"): at(9, 9, 9)},
        }
        said = {figure: (target, measured) for figure, target, measured in rows(found)}
        self.assertEqual(
            said["nn+bs: LS's turnaround, STP"][1],
            "MPS: 12.00 ms (11.50 to 12.50), 1.20; MPS, stream priorities: 2.00 ms (1.50 to 2.50), 1.60; "
            "priority: 1.00 ms (0.50 to 1.50), 1.80",
        )
        self.assertEqual(
            said["Figure 12, priority: LS's speed-up over MPS, mean of 2 pairs; most; least"],
            (">= 9.8", "11.0; 12.0 (nn+bs); 10.0 (nn+md5)"),
        )
        self.assertEqual(said["Figure 13, priority: ANTT, mean"], ("<= 1.56", "1.60"))
        self.assertEqual(said["Figure 14, MPS: STP, mean"], ("", "1.10"))
        self.assertEqual(
            said["priority: pairs in which LS is later than under MPS with stream priorities"], ("none", "nn+md5")
        )

    def test_pairs_that_are_later_and_those_whose_repetitions_all_are(self):
        over = {("bs", "nn"): at(2.0, 1, 1), ("md", "nn"): at(2.0, 1, 1), ("md5", "nn"): at(2.0, 1, 1)}
        pairs = {("bs", "nn"): at(2.9, 1, 1), ("md", "nn"): at(3.1, 1, 1), ("md5", "nn"): at(1.9, 1, 1)}
        self.assertEqual(later(pairs, over), ([("bs", "nn"), ("md", "nn")], [("md", "nn")]))

    def test_a_reserve(self):
        figure, target, measured = reserve_row(6, {("bs", "nn"): at(1.3, 0, 0, 0.13)}, {"nn": 0.65})
        self.assertEqual(
            (figure, target, measured),
            ("Figure 11, reserve of 6/13: LS's turnaround over alone", "", "nn+bs 2.00 (1.80 to 2.20)"),
        )


if __name__ == "__main__":
    unittest.main()
