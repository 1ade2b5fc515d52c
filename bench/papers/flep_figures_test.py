"""Tests of what is said of FLEP's figures."""

import types
import unittest

from bench.papers.flep_figures import by_delay, overhead_ms


class FlepFiguresTest(unittest.TestCase):
    def test_delays_are_parts_of_the_long_kernel(self):
        ups = {2: {"MM": 4.0, "VA": 6.0}, 0.1: {"MM": 9.0}, 6: {}, 12: {"MM": 1.0}}
        self.assertEqual(by_delay(ups, 10.0), "1 %: 9.0, 20 %: 5.0")

    def test_overhead_is_over_the_long_one_alone(self):
        large = {name: types.SimpleNamespace(managed_ms=ms) for name, ms in (("NN", 15.0), ("PF", 7.0))}
        found = {("NN", "few"): {"both": 15.5}, ("PF", "few"): {"both": 7.1}}
        self.assertAlmostEqual(overhead_ms(found, large), 0.3)


if __name__ == "__main__":
    unittest.main()
