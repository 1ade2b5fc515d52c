"""Tests of what is said of FLEP's figures."""

import types
import unittest

from bench.papers.flep_figures import by_delay, measured_everywhere, overhead_ms, turnaround_words


class FlepFiguresTest(unittest.TestCase):
    def test_delays_are_parts_of_the_long_kernel(self):
        ups = {2: {"MM": 4.0, "VA": 6.0}, 0.1: {"MM": 9.0}, 6: {}, 12: {"MM": 1.0}}
        self.assertEqual(by_delay(ups, 10.0), "1 %: 9.0, 20 %: 5.0")

    def test_overhead_is_over_the_long_one_alone(self):
        large = {name: types.SimpleNamespace(managed_ms=ms) for name, ms in (("NN", 15.0), ("PF", 7.0))}
        found = {("NN", "few"): {"both": 15.5}, ("PF", "few"): {"both": 7.1}}
        self.assertAlmostEqual(overhead_ms(found, large), 0.3)

    def test_sides_are_compared_over_the_pairs_that_all_of_them_have(self):
        slow, quick = {"short": 1.9}, {"short": 0.7}
        sides = {0: {("PL", "few"): slow, ("NN", "few"): quick}, 8: {("NN", "few"): quick}}
        kept = measured_everywhere(sides)
        self.assertEqual(kept, {0: {("NN", "few"): quick}, 8: {("NN", "few"): quick}})
        self.assertEqual(turnaround_words(sides[0]), "1.300 ms (NN 0.70, PL 1.90)")


if __name__ == "__main__":
    unittest.main()
