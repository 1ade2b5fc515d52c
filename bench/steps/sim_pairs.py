"""SiM's Figures 10 and 11: its 21 pairs of seven kernels under `sim`, beside plain MPS and one after the other.

Both kernels of a pair launch without a pause. System throughput (STP) is the sum, over both, of launches a second
together divided by launches a second alone and unmanaged; programs that take turns have 1 together. Average normalized
turnaround time (ANTT) is the mean of the same quotients the other way round. `sim` divides each SM
(`placement = "capacity"`), as the paper does, or leaves them to the GPU if they get on better so. It learns for some
seconds before it is measured. Each pair is printed when it is done, and after each round the medians so far. A round
takes some three minutes.
"""

import statistics

from .capacity import LOW, antt, pairs_and_alone, speeds
from .side_by_side import rates

BY_CAPACITY = '[daemon]\nplacement = "capacity"\n'
ROUNDS = 3
LEARN_S, MEASURE_S = 3, 1.6  # after 1.2 s with both at work the policy has tried to leave them to the GPU
PAPER = {True: ("Figure 10, a kernel of low utilization", ">= 1.098"), False: ("Figure 11, none", ">= 1.003")}
LEAST_OF_MPS = 0.97


def step_sim_pairs(lab):
    """SiM's Figures 10 and 11: its pairs under sim, by capacity of each SM, beside plain MPS, three rounds by turns."""
    pairs, alone = pairs_and_alone(lab)
    sim, mps = ({pair: [] for pair in pairs} for _ in "ab")
    with lab.gpuctld(config=BY_CAPACITY):
        for slice_path in ("one", "other"):
            lab.gpuctl("create-slice", slice_path)
        lab.gpuctl("set", "/", "policy=sim")
        for round_number in range(1, ROUNDS + 1):
            for pair in pairs:
                mps[pair].append(speeds(alone, pair, rates(lab, (None, None), pair, MEASURE_S)))
                sim[pair].append(speeds(alone, pair, rates(lab, ("one", "other"), pair, MEASURE_S, LEARN_S)))
                lab.record(round=round_number, pair=pair, sim=sim[pair][-1], mps=mps[pair][-1])
                measured = "; ".join(words(of_one[pair][-1]) for of_one in (sim, mps))
                yield f"{round_number}: {' and '.join(pair)}: STP (of each), ANTT under sim; plain MPS", "", measured
            yield from summary(round_number, sim, mps)


def words(of_both):
    return f"{sum(of_both):.2f} ({of_both[0]:.2f} and {of_both[1]:.2f}), {antt(of_both):.2f}"


def summary(rounds, sim, mps):
    """Rows of the means over pairs, of each pair's median so far. `sim`, `mps`: by pair, of each round the speeds of
    both.
    """
    ours, stock = ({pair: statistics.median(map(sum, of_one[pair])) for pair in of_one} for of_one in (sim, mps))
    for low, (what, target) in PAPER.items():
        some = [pair for pair in ours if bool(set(pair) & LOW) == low]
        if not some:
            continue
        means = [statistics.mean(side[pair] for pair in some) for side in (ours, stock)]
        yield (
            f"{what}: STP under sim, mean of {len(some)} pairs, rounds {rounds}; plain MPS",
            target,
            f"{means[0]:.3f}; {means[1]:.3f}",
        )
    behind = [pair for pair in ours if ours[pair] < LEAST_OF_MPS * stock[pair]]
    said = ", ".join(f"{' and '.join(pair)} {ours[pair] / stock[pair]:.2f}" for pair in behind)
    yield f"pairs with less than {LEAST_OF_MPS} of plain MPS's STP, rounds {rounds}", "none", said or "none"
