"""Tests of the preemption curve's rows."""

import unittest

from bench.papers.curve import rows
from bench.papers.factors import BY_TIME


class CurveTest(unittest.TestCase):
    def test_a_row_has_what_was_measured_and_says_what_was_not(self):
        usage = {"evict_us_mean": 19.6, "evict_us_max": 40.2, "evictions": 400}
        ratios = {("VA", BY_TIME): (1.012, ""), ("VA", 5): (None, "no time")}
        usages = {("VA", BY_TIME): (usage, ""), ("VA", 5): (None, "1 WRONG, 3 evictions")}
        self.assertEqual(
            list(rows(ratios, usages)),
            [
                (
                    "VA, chunks sized by time: overhead; left after",
                    "",
                    "+1.2 %; 20 us, at most 40, 400 evictions",
                ),
                (
                    "VA, chunks 5 block-tasks: overhead; left after",
                    "",
                    "NOT MEASURED: no time; NOT MEASURED: 1 WRONG, 3 evictions",
                ),
            ],
        )


if __name__ == "__main__":
    unittest.main()
