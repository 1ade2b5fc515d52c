"""The figures of cpu_bound.py, from rounds whose figures are known."""

import unittest

from .cpu_bound import BELOW, FREE, PLAIN, interval, ratios


class Figures(unittest.TestCase):
    def test_a_slower_loop_takes_more_time(self):
        turns = [{PLAIN: 100, FREE: 100, BELOW: 50}, {PLAIN: 110, FREE: 100, BELOW: 110}]
        self.assertEqual(ratios(turns, FREE), [1, 1.1])
        self.assertEqual(ratios(turns, BELOW), [2, 1])

    def test_the_interval_leaves_out_one_of_ten_on_each_side(self):
        self.assertEqual(interval(range(10)), (1, 8))  # 97.9 % by the binomial distribution

    def test_few_rounds_leave_out_none(self):
        self.assertEqual(interval([3, 1, 2]), (1, 3))


if __name__ == "__main__":
    unittest.main()
