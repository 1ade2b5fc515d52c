#!/usr/bin/env python3
"""Tests of the frontier of LS latency against batch throughput."""

import math
import unittest

from bench.corun import frontier

STOCK = {"fast": (10.0, 50.0), "middle": (20.0, 80.0), "full": (100.0, 100.0), "bad": (120.0, 60.0)}


class Frontier(unittest.TestCase):
    def test_dominates(self):
        self.assertTrue(frontier.dominates((10, 50), (20, 40)))
        self.assertTrue(frontier.dominates((10, 50), (10, 40)))
        self.assertTrue(frontier.dominates((10, 50), (11, 50)))
        self.assertFalse(frontier.dominates((10, 50), (10, 50)))
        self.assertFalse(frontier.dominates((10, 50), (9, 40)))
        self.assertFalse(frontier.dominates((10, 50), (20, 60)))

    def test_the_frontier_of_all(self):
        self.assertEqual(frontier.frontier(STOCK), ["fast", "middle", "full"])
        self.assertEqual(frontier.frontier({}), [])
        self.assertEqual(frontier.frontier({"a": (1, 1), "b": (1, 1)}), ["a", "b"])

    def test_distance_of_a_dominated_point(self):
        # To be level with "middle" takes 1.5 in latency or 1.6 in throughput; "fast" has no greater throughput.
        self.assertAlmostEqual(frontier.distance((30.0, 50.0), STOCK.values()), 1.5)
        self.assertAlmostEqual(frontier.distance((200.0, 95.0), STOCK.values()), 100 / 95)

    def test_distance_on_and_beyond(self):
        self.assertEqual(frontier.distance(STOCK["middle"], STOCK.values()), 1)
        self.assertLess(frontier.distance((15.0, 90.0), STOCK.values()), 1)
        self.assertAlmostEqual(frontier.distance((10.0, 100.0), {"one": (20.0, 100.0)}.values()), 0.5)
        self.assertEqual(frontier.distance((10.0, 1.0), []), 0)

    def test_distance_agrees_with_dominance(self):
        grid = [(float(latency), float(throughput)) for latency in range(5, 130, 5) for throughput in range(40, 110, 5)]
        for point in grid:
            distance = frontier.distance(point, STOCK.values())
            if distance != 1:
                self.assertEqual(frontier.is_on_frontier(point, STOCK.values()), distance < 1, point)
            moved = (point[0] / distance * 0.999, point[1] * distance * 1.001)
            self.assertTrue(frontier.is_on_frontier(moved, STOCK.values()), point)
            worse = (point[0] / distance * 1.001, point[1] * distance * 0.999)
            self.assertFalse(frontier.is_on_frontier(worse, STOCK.values()), point)

    def test_place(self):
        found = frontier.place((30.0, 50.0), STOCK)
        self.assertFalse(found["on_frontier"])
        self.assertEqual(found["dominated_by"], ["fast", "middle"])
        self.assertEqual(found["least_latency"], {"name": "fast", "latency_ratio": 3.0, "throughput_ratio": 1.0})
        self.assertEqual(found["most_throughput"], {"name": "full", "latency_ratio": 0.3, "throughput_ratio": 0.5})
        self.assertEqual(found["nearest"]["name"], "middle")
        self.assertIsNone(frontier.place((1, 1), {}))
        self.assertEqual(frontier.place((5.0, 200.0), STOCK)["dominated_by"], [])

    def test_nothing_is_done(self):
        self.assertEqual(frontier.distance((10.0, 0.0), [(20.0, 50.0)]), 0.5)
        self.assertEqual(frontier.distance((10.0, 0.0), [(0.0, 50.0)]), math.inf)


if __name__ == "__main__":
    unittest.main()
