"""Tests of the figures that FRS's orders come to."""

import unittest

from bench.compare.figures import of_rows
from bench.papers.frs import figures, limit_row, rows


class FrsTest(unittest.TestCase):
    def setUp(self):
        # What is slow in one order is quick in the other, so the means are even and the orders are not.
        self.found = figures([{"A": 1.0, "B": 3.0}, {"B": 2.0, "A": 4.0}])

    def test_of_each_order(self):
        self.assertEqual(self.found["antt"], [2, 3])
        self.assertEqual(self.found["dntt"], [1, 1])
        self.assertEqual(self.found["stp"], [1 + 1 / 3, 1 / 2 + 1 / 4])

    def test_of_the_applications_means(self):
        self.assertEqual(self.found["means"], {"A": 2.5, "B": 2.5})
        self.assertEqual(self.found["dntt_of_means"], 0)
        self.assertAlmostEqual(self.found["stp_of_means"], 0.8)

    def test_what_the_same_orders_come_to_at_no_cost(self):
        _, target, measured = limit_row("frs", [{"A": 1.0, "B": 3.0}, {"B": 2.0, "A": 4.0}])
        self.assertEqual((target, measured), ("", "2.50 (2.00 to 3.00); 0.00"))

    def test_rows_can_be_compared(self):
        table = [("frs", *row) for side in ("frs", "srt") for row in rows(side, self.found)]
        compared, unread = of_rows(table)
        self.assertEqual(
            {name: (at.lower, at.value, at.spread) for name, at in compared.items()},
            {
                "frs: FRS, frs: ANTT, mean and range of 2 orders": (True, 2.5, 1),
                "frs: FRS, frs: DNTT of the applications' means": (True, 0, None),
                "frs: FRS, frs: STP of the applications' means": (False, 0.8, None),
            },
        )
        self.assertEqual(unread, [])


if __name__ == "__main__":
    unittest.main()
