"""Tests of what is said of fixed chunks."""

import unittest

from bench.papers.factors import BY_TIME, effisha_rows, flep_rows, overheads, smallest


class FactorsTest(unittest.TestCase):
    def test_the_smallest_that_is_good_enough(self):
        self.assertEqual(smallest({BY_TIME: 1.0, 1: 1.3, 2: 1.04, 5: 1.039, 10: 1.1, 20: 1.0}), 5)
        self.assertIsNone(smallest({BY_TIME: 1.0, 1: 1.05}))

    def test_rows(self):
        found = {"VA": {BY_TIME: 1.01, 1: 1.5, 200: 1.03}, "MD": {BY_TIME: 1.0, 1: 1.01, 200: 1.2}, "NN": {1: 1.2}}
        self.assertEqual(overheads(found["VA"]), "by time: +1.0 %; 1: +50.0 %; 200: +3.0 %")
        rows = {figure: measured for figure, _, measured in flep_rows(found)}
        self.assertEqual(
            rows["Table 1: smallest factor with less than 4 % overhead (that of the paper)"],
            "VA 200 (200), MD 1 (1), NN none (100)",
        )
        self.assertEqual(
            rows["overhead with these factors; with chunks sized by time, mean of 2 kernels"], "+2.0 %; +0.5 %"
        )

    def test_means_are_of_kernels_that_have_both(self):
        found = {"A": {BY_TIME: 1.0, 1: 1.5}, "B": {BY_TIME: 1.2, 1: 1.1}, "C": {1: 9.0}}
        rows = {figure: measured for figure, _, measured in effisha_rows(found)}
        self.assertEqual(
            rows,
            {
                "Figure 10, a look after each block-task: overhead, mean of 2 kernels": "+30.0 %",
                "Figure 10, chunks sized by time: overhead, mean of 2 kernels": "+10.0 %",
            },
        )
        self.assertEqual(list(effisha_rows({"C": {1: 9.0}})), [])


if __name__ == "__main__":
    unittest.main()
