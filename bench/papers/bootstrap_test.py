"""Tests of means with intervals."""

import unittest

from bench.papers.bootstrap import interval, words


class BootstrapTest(unittest.TestCase):
    def test_the_interval_holds_the_mean_and_lies_within_the_values(self):
        mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 10.0])
        self.assertEqual(mean, 4)
        self.assertTrue(1 < low < 4 < high < 10, (low, high))

    def test_values_that_are_further_apart_have_a_wider_interval(self):
        _, low, high = interval([9, 10, 11, 10, 10])
        _, least, most = interval([1, 10, 19, 10, 10])
        self.assertLess(high - low, most - least)

    def test_equal_values_have_none(self):
        self.assertEqual(words([2.0, 2.0, 2.0]), "2.00 (2.00 to 2.00; n=3)")


if __name__ == "__main__":
    unittest.main()
