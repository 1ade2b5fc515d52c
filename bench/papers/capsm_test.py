"""Tests of what is said of reserves of a part of each SM."""

import unittest

from bench.papers.capsm import CAPACITY, FIRST, WHOLE, rows
from bench.papers.smguard_test import at


class CapsmTest(unittest.TestCase):
    def test_rows(self):
        found = {
            WHOLE: {(8, ("bs", "nn")): at(1.0, 0, 0, 0.1), (8, ("md", "nn")): at(2.0, 0, 0, 0.1)},
            CAPACITY: {
                (8, ("bs", "nn")): at(1.2, 0, 0, 0.2),
                (8, ("md", "nn")): at(2.0, 0, 0, 0.1),
                (4, ("md", "nn")): at(9, 0, 0),  # which the other side lacks
            },
            FIRST: {(8, ("md", "nn")): at(2.2, 0, 0, 0.1)},
        }
        said = list(rows(found, {"nn": 0.5, "bs": 25, "md": 50}))
        self.assertEqual(
            said[:2],
            [
                (
                    "Figure 10, reserve of 8/13, a part of each SM: LS over LS with whole SMs; over alone with whole "
                    "SMs, and so",
                    "",
                    "nn+bs 1.20; 2.00 (1.80 to 2.20) and 2.40 (2.00 to 2.80), "
                    "nn+md 1.00; 4.00 (3.80 to 4.20) and 4.00 (3.80 to 4.20)",
                ),
                (
                    "Figure 10, reserve of 8/13, a part of each SM: mean of 2 pairs; most",
                    "1.049, up to 1.2",
                    "1.100; 1.20 (nn+bs)",
                ),
            ],
        )
        self.assertEqual(said[2][0], "Figure 10, reserve of 4/13, a part of each SM: NOT MEASURED")
        self.assertEqual(said[6][2], "1.100; 1.10 (nn+md)")
        self.assertEqual(
            said[7:],
            [
                ("reserve of 8/13, whole SMs: batch over alone", "", "bs 2.00, md 1.00"),
                ("reserve of 8/13, a part of each SM: batch over alone", "", "bs 2.00, md 1.00"),
                ("reserve of 8/13, a part of each SM and priority: batch over alone", "", "md 1.00"),
            ],
        )


if __name__ == "__main__":
    unittest.main()
