"""Tests of the figures of EffiSha's kernels."""

import unittest

from bench.papers.effisha_figures import figures, rows


class EffishaTest(unittest.TestCase):
    def setUp(self):
        # Two kernels of 2 and 4 ms alone, twice.
        self.found = figures([2.0, 4.0], [[(0, 2), (0, 4)], [(3, 11), (3, 15)]])

    def test_figures(self):
        self.assertEqual(self.found["ntt"], [1.5, 2.5])
        self.assertEqual(self.found["mean"], [1.5, 2.5])
        self.assertEqual(self.found["stp"], [1.5, 1 / 2 + 1 / 3])
        self.assertEqual(self.found["until"], [11, 15])

    def test_rows(self):
        default = figures([2.0, 4.0], [[(0, 2), (0, 2)], [(3, 10), (3, 10)]])
        found = {
            figure.rpartition(": ")[2]: measured for figure, _, measured in rows("piv", ["A", "B"], self.found, default)
        }
        self.assertEqual(found["NTT"], "A 1.50, B 2.50")
        self.assertEqual(found["mean NTT, and range of the repetitions"], "2.00 (1.50 to 2.50)")
        self.assertEqual(found["time until all are done, longer than under MPS"], "30.0 %")


if __name__ == "__main__":
    unittest.main()
