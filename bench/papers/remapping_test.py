"""Tests of what is said of kernels that lose SMs."""

import unittest

from bench.papers.remapping import ALL, BACK, KEPT, latencies, rows


class RemappingTest(unittest.TestCase):
    def test_latencies(self):
        # Of 10 alone, 3 were done when the SMs were taken, and 7 were left.
        whole, rest, count = latencies([(0, 3, 12), (100, 103, 112)], 10)
        self.assertAlmostEqual(whole, 1.2)
        self.assertAlmostEqual(rest, 9 / 7)
        self.assertEqual(count, 2)

    def test_launches_that_were_not_met_in_the_middle_do_not_count(self):
        self.assertIsNone(latencies([(10, 9, 22), (10, 18, 22), (10, 13, 12)], 10))

    def test_rows(self):
        found = {"va": {KEPT: (1.2, 1.3, 8), BACK: None, ALL: (1.8, 2.0, 7)}, "bs": {KEPT: (1.4, 1.5, 8), ALL: None}}
        said = {figure: (target, measured) for figure, target, measured in rows(found)}
        self.assertEqual(
            said["va: latency over untouched, and from the change on"][1],
            "a quarter of the SMs taken: 1.20, 1.30 (n=8); all, given back: 1.80, 2.00 (n=7)",
        )
        figure = "Figure 16, {}: latency over untouched, mean of {} kernels; worst; from the change on"
        self.assertEqual(said[figure.format(KEPT, 2)], ("1.2", "1.30; 1.40 (bs); 1.40"))
        self.assertEqual(said[figure.format(ALL, 1)], ("1.8", "1.80; 1.80 (va); 2.00"))
        self.assertNotIn(figure.format(BACK, 0), said)


if __name__ == "__main__":
    unittest.main()
