"""Compares a point with others: a small LS latency and a great batch throughput are good. Pure functions over (latency,
throughput).

A point is on the frontier of some others unless one of them is at least as good on both axes and better on one.

The distance is the least factor f for which the point (latency / f, throughput * f) equals or beats each of the others
on at least one axis. If it is greater than 1, the others dominate the point, by that factor. If it is less than 1, the
point is beyond their frontier, by that factor. If it is 1, the point is level with them.
"""

import math


def dominates(other, point):
    """Whether `other` is at least as good on both axes and better on one."""
    return other[0] <= point[0] and other[1] >= point[1] and tuple(other) != tuple(point)


def is_on_frontier(point, others):
    return not any(dominates(other, point) for other in others)


def frontier(points):
    """The names of the points, of a dictionary, that no other point dominates."""
    return [name for name, point in points.items() if is_on_frontier(point, points.values())]


def ratio(above, below):
    return above / below if below else math.inf if above else 1.0


def behind(point, other):
    """The factor by which `point` would have to improve on one axis to be level with `other` there."""
    return min(ratio(point[0], other[0]), ratio(other[1], point[1]))


def distance(point, others):
    return max((behind(point, other) for other in others), default=0.0)


def place(point, others):
    """The position of a point relative to a dictionary of others. All ratios are the point's value over the other's."""
    if not others:
        return None
    fastest = min(others, key=lambda name: (others[name][0], -others[name][1]))
    fullest = max(others, key=lambda name: (others[name][1], -others[name][0]))
    nearest = max(others, key=lambda name: behind(point, others[name]))

    def beside(name):
        latency, throughput = others[name]
        return {
            "name": name,
            "latency_ratio": ratio(point[0], latency),
            "throughput_ratio": ratio(point[1], throughput),
        }

    return {
        "on_frontier": is_on_frontier(point, others.values()),
        "distance": distance(point, others.values()),
        "least_latency": beside(fastest),
        "most_throughput": beside(fullest),
        "nearest": beside(nearest),
        "dominated_by": sorted(name for name, other in others.items() if dominates(other, point)),
    }
