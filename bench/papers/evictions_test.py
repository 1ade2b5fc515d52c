"""Tests of how evictions are counted by priority."""

import unittest

from bench.papers.evictions import by_priority, rows


class EvictionsTest(unittest.TestCase):
    def test_a_launch_has_the_priority_that_was_drawn_last_before_it(self):
        issued = [(100, 190, 3), (200, 290, 9), (300, 390, 3)]
        launches = [
            {"issued_ns": at, "evictions": number} for at, number in ((50, 7), (101, 2), (205, 0), (300, 1), (400, 7))
        ]
        evictions, count = by_priority(issued, launches)
        self.assertEqual((evictions[3], evictions[9]), (3, 0))
        self.assertEqual(count, {3: 2, 9: 1})

    def test_rows(self):
        found = dict((figure, measured) for figure, _, measured in rows({1: {1: 40, 3: 8}, 8: {1: 4}}, 2.5))
        self.assertEqual(found["Figure 9, wait 1 ms: evictions at priority 1 to 9"], "100, 0, 20, 0, 0, 0, 0, 0, 0")
        self.assertEqual(found["Figure 9: evictions by wait time"], "1 ms 120, 8 ms 10")


if __name__ == "__main__":
    unittest.main()
