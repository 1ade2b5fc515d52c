"""Unit tests of the figures of SiM's pairs."""

import unittest

from bench.steps import sim_pairs

ALONE = {"lavaMD": 100.0, "tpacf": 40.0, "nbody": 10.0}
WITH_LOW, WITHOUT = ("lavaMD", "tpacf"), ("lavaMD", "nbody")


class SimPairs(unittest.TestCase):
    def test_speeds_are_those_together_over_those_alone(self):
        self.assertEqual(sim_pairs.speeds(ALONE, WITH_LOW, [75.0, 10.0]), [0.75, 0.25])
        self.assertEqual(sim_pairs.words([0.75, 0.25]), "1.00 (0.75 and 0.25), 2.67")

    def test_means_are_of_medians_of_pairs_with_a_low_kernel_and_of_the_others(self):
        sim = {WITH_LOW: [[0.8, 0.4], [0.8, 0.5], [0.1, 0.1]], WITHOUT: [[0.5, 0.5]]}
        mps = {WITH_LOW: [[0.6, 0.5]], WITHOUT: [[0.5, 0.6]]}
        low, others, behind = sim_pairs.summary(3, {sim_pairs.SIM: sim, sim_pairs.MPS: mps})
        self.assertIn("Figure 10", low[0])
        self.assertEqual(low[1:], (">= 1.098", "1.200 (0.200 to 1.300); 1.100 (1.100 to 1.100)"))
        self.assertIn("Figure 11", others[0])
        self.assertEqual(others[1:], (">= 1.003", "1.000 (1.000 to 1.000); 1.100 (1.100 to 1.100)"))
        self.assertEqual(behind[1:], ("none", "lavaMD and nbody 0.91"))

    def test_a_pair_that_is_level_with_mps_is_not_behind(self):
        level = {sim_pairs.SIM: {WITH_LOW: [[0.5, 0.5]]}, sim_pairs.MPS: {WITH_LOW: [[0.5, 0.53]]}}
        *means, behind = sim_pairs.summary(1, level)
        self.assertEqual(len(means), 1, "no pair of the other group")
        self.assertEqual(behind[2], "none")

    def test_the_kernel_with_the_shorter_launches_has_the_greater_priority(self):
        self.assertEqual(sim_pairs.shorter_first(ALONE, WITH_LOW), ("high", "low"))
        self.assertEqual(sim_pairs.shorter_first(ALONE, ("nbody", "tpacf")), ("low", "high"))


if __name__ == "__main__":
    unittest.main()
