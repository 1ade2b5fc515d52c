"""SiM's Figures 10 and 11: its 21 pairs of seven kernels under `sim`, beside plain MPS and one after the other.

Both kernels of a pair launch without a pause. System throughput (STP) is the sum, over both, of launches a second
together divided by launches a second alone and unmanaged; programs that take turns have 1 together. Average normalized
turnaround time (ANTT) is the mean of the same quotients the other way round. `sim` divides each SM
(`placement = "capacity"`), as the paper does, and in a second half whole SMs. It learns for some seconds before it is
measured. Each pair is printed when it is done. Some six minutes in all.
"""

import statistics

from .capacity import LOW, antt, pairs_and_alone, speeds
from .side_by_side import rates

PLACEMENT = '[daemon]\nplacement = "{}"\n'
LEARN_S, MEASURE_S = 3, 1.6  # after 1.2 s with both at work the policy has tried to leave them to the GPU
PAPER = {True: ("Figure 10, a kernel of low utilization", ">= 1.098"), False: ("Figure 11, none", ">= 1.003")}
LEAST_OF_MPS = 0.97


def step_sim_pairs(lab):
    """SiM's Figures 10 and 11: its pairs under sim, by capacity of each SM and by whole SMs, beside plain MPS."""
    pairs, alone = pairs_and_alone(lab)
    mps = {}
    for placement in ("capacity", "sms"):
        sim = {}
        with lab.gpuctld(config=PLACEMENT.format(placement)):
            for slice_path in ("one", "other"):
                lab.gpuctl("create-slice", slice_path)
            lab.gpuctl("set", "/", "policy=sim")
            for pair in pairs:
                if placement == "capacity":
                    mps[pair] = speeds(alone, pair, rates(lab, (None, None), pair, MEASURE_S))
                sim[pair] = speeds(alone, pair, rates(lab, ("one", "other"), pair, MEASURE_S, LEARN_S))
                lab.record(placement=placement, pair=pair, sim=sim[pair], mps=mps[pair])
                measured = "; ".join(words(of_one) for of_one in (sim[pair], mps[pair]))
                yield f"{' and '.join(pair)}: STP (of each), ANTT under sim, {placement}; plain MPS", "", measured
        yield from summary(placement, sim, mps)


def words(of_both):
    return f"{sum(of_both):.2f} ({of_both[0]:.2f} and {of_both[1]:.2f}), {antt(of_both):.2f}"


def summary(placement, sim, mps):
    """Rows of the means. `sim`, `mps`: the speeds of both, by pair."""
    for low, (what, target) in PAPER.items():
        some = [pair for pair in sim if bool(set(pair) & LOW) == low]
        if not some:
            continue
        means = [statistics.mean(sum(side[pair]) for pair in some) for side in (sim, mps)]
        yield (
            f"{what}: STP under sim, {placement}, mean of {len(some)} pairs; plain MPS",
            target,
            f"{means[0]:.3f}; {means[1]:.3f}",
        )
    behind = [pair for pair in sim if sum(sim[pair]) < LEAST_OF_MPS * sum(mps[pair])]
    said = ", ".join(f"{' and '.join(pair)} {sum(sim[pair]) / sum(mps[pair]):.2f}" for pair in behind)
    yield f"pairs with less than {LEAST_OF_MPS} of plain MPS's STP, {placement}", "none", said or "none"
