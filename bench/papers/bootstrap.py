"""Means with intervals, over the starts of an experiment."""

import random
import statistics

RESAMPLES = 2000
PART = 0.95


def interval(values):
    """The mean of some values, and where PART of the means lie of as many drawn from them with replacement."""
    rng = random.Random(1)
    means = sorted(statistics.mean(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    out = round((1 - PART) / 2 * RESAMPLES)
    return statistics.mean(values), means[out], means[-1 - out]


def words(values, digits=2):
    """The mean, the interval, and of how many."""
    mean, low, high = interval(values)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}; n={len(values)})"
