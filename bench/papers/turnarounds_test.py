"""Tests of what is said of whole programs' turnarounds."""

import unittest

from bench.papers.kernels import SMGUARD
from bench.papers.smguard import BATCH, LS
from bench.papers.turnarounds import Found, launches_for, rows


class TurnaroundsTest(unittest.TestCase):
    def test_every_program_has_a_duration(self):
        self.assertEqual(set(SMGUARD), {*LS, *BATCH})

    def test_launches_take_as_long_as_the_paper_says(self):
        self.assertEqual(launches_for(10, 100), 100)
        self.assertEqual(launches_for(0.1, 1000), 1)
        self.assertEqual(launches_for(1000, 1), 10_000)

    def test_rows(self):
        found = {
            "va": Found(4, 3.0, [(1.0, 1.02), (2.0, 2.0), (1.0, 1.5)]),  # a disturbed pair moves no median
            "nn": Found(1, 2.0, [(2.0, 2.08)]),
        }
        said = list(rows(found))
        self.assertEqual(said[0][0], "va, 4 launches, 1000 ms: turnaround over the original's")
        self.assertEqual(said[0][2], "1.020 (1.000 to 1.500); the first time 3.00")
        self.assertEqual(said[2][2], "+3.00 %; +4.00 % (nn)")

    def test_says_nothing_of_nothing(self):
        self.assertEqual(list(rows({})), [])


if __name__ == "__main__":
    unittest.main()
