"""SiM's Figures 10 and 11: its 21 pairs of seven kernels under `sim`, beside plain MPS, MPS with stream priorities (the
greater one for the kernel with the shorter launches) and one after the other.

Both kernels of a pair launch without a pause. System throughput (STP) is the sum, over both, of launches a second
together divided by launches a second alone and unmanaged; programs that take turns have 1 together. Average normalized
turnaround time (ANTT) is the mean of the same quotients the other way round. `sim` divides whole SMs, where the paper
divides each. It learns for some seconds before it is measured. Each pair is printed when it is done, and after each
round the medians so far. A round takes some three minutes.
"""

import itertools
import math
import statistics

from .side_by_side import rates

KERNELS = ("binomialOptions", "FDTD3d", "lavaMD", "md5Hash", "nbody", "particleFilter", "tpacf")
LOW = {"FDTD3d", "particleFilter", "tpacf"}  # issue slot utilization below 50 %, in the paper
ROUNDS = 3
ALONE_S, LEARN_S, MEASURE_S = 0.8, 2.5, 1
PAPER = {True: ("Figure 10, a kernel of low utilization", ">= 1.098"), False: ("Figure 11, none", ">= 1.003")}
LEAST_OF_MPS = 0.97
SIDES = SIM, MPS, MPS_PRIORITIES = "sim", "plain MPS", "MPS, stream priorities"


def step_sim_pairs(lab):
    """SiM's Figures 10 and 11: its pairs under sim, beside MPS, three rounds by turns."""
    pairs, alone = pairs_and_alone(lab)
    sides = {side: {pair: [] for pair in pairs} for side in SIDES}
    with lab.gpuctld():
        for slice_path in ("one", "other"):
            lab.gpuctl("create-slice", slice_path)
        lab.gpuctl("set", "/", "policy=sim")
        for round_number in range(1, ROUNDS + 1):
            for pair in pairs:
                now = {
                    MPS: rates(lab, (None, None), pair, MEASURE_S),
                    MPS_PRIORITIES: rates(lab, (None, None), pair, MEASURE_S, priorities=shorter_first(alone, pair)),
                    SIM: rates(lab, ("one", "other"), pair, MEASURE_S, LEARN_S),
                }
                for side in SIDES:
                    sides[side][pair].append(speeds(alone, pair, now[side]))
                lab.record(round=round_number, pair=pair, **{side: sides[side][pair][-1] for side in SIDES})
                measured = "; ".join(words(sides[side][pair][-1]) for side in SIDES)
                yield (
                    f"{round_number}: {' and '.join(pair)}: STP (of each), ANTT under {'; '.join(SIDES)}",
                    "",
                    measured,
                )
            yield from summary(round_number, sides)


def pairs_and_alone(lab):
    """SiM's pairs, and of each of their kernels the launches a second alone and unmanaged. A rehearsal has one pair."""
    pairs = list(itertools.combinations(KERNELS, 2))
    if lab.options.rehearse:
        pairs = pairs[:1]
    kernels = sorted({kernel for pair in pairs for kernel in pair})
    alone = {kernel: rates(lab, (None,), (kernel,), ALONE_S)[0] for kernel in kernels}
    lab.record(alone=alone)
    return pairs, alone


def speeds(alone, pair, together):
    """Launches a second of each of a pair, over those alone."""
    return [rate / alone[kernel] for rate, kernel in zip(together, pair)]


def antt(of_both):
    """Of the speeds of both, over those alone. A kernel that had no launch at all never ends."""
    return statistics.mean(1 / speed if speed else math.inf for speed in of_both)


def shorter_first(alone, pair):
    """Stream priorities: the greater one for the kernel that is launched more often when it is alone."""
    return ("high", "low") if alone[pair[0]] >= alone[pair[1]] else ("low", "high")


def words(of_both):
    return f"{sum(of_both):.2f} ({of_both[0]:.2f} and {of_both[1]:.2f}), {antt(of_both):.2f}"


def summary(rounds, sides):
    """Rows of the means over pairs, of each pair's median so far, with the range over rounds of the mean. `sides`: by
    side, then by pair, of each round the speeds of both.
    """
    stp = {side: {pair: [sum(both) for both in runs] for pair, runs in sides[side].items()} for side in sides}
    medians = {side: {pair: statistics.median(runs) for pair, runs in stp[side].items()} for side in sides}
    for low, (what, target) in PAPER.items():
        some = [pair for pair in medians[SIM] if bool(set(pair) & LOW) == low]
        if not some:
            continue
        means = []
        for side in sides:
            of_rounds = [statistics.mean(runs) for runs in zip(*(stp[side][pair] for pair in some))]
            mean = statistics.mean(medians[side][pair] for pair in some)
            means.append(f"{mean:.3f} ({min(of_rounds):.3f} to {max(of_rounds):.3f})")
        yield f"{what}: STP, mean of {len(some)} pairs, rounds {rounds}: {'; '.join(sides)}", target, "; ".join(means)
    part = {pair: medians[SIM][pair] / medians[MPS][pair] for pair in medians[SIM]}
    said = ", ".join(f"{' and '.join(pair)} {part[pair]:.2f}" for pair in part if part[pair] < LEAST_OF_MPS)
    yield f"pairs with less than {LEAST_OF_MPS} of plain MPS's STP, rounds {rounds}", "none", said or "none"
