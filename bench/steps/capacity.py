"""The same capacity on each SM (`placement = "capacity"`) and in whole SMs: SiM's kernels and pairs.

For SiM's Figure 9, each of its seven kernels has parts of the GPU, alone: as so many of the workers that each SM holds,
and as so many SMs; some two minutes. For its Figures 10 and 11, each kernel of a pair may have half of the GPU, in the
same two ways; some five minutes. System throughput (STP) is as in side_by_side.py. Average normalized turnaround time
(ANTT) is the mean, over both, of launches a second alone and unmanaged divided by launches a second together. What one
way shows is printed before the next is measured.
"""

import itertools
import math
import statistics

from .side_by_side import rates

KERNELS = ("binomialOptions", "FDTD3d", "lavaMD", "md5Hash", "nbody", "particleFilter", "tpacf")
LOW = {"FDTD3d", "particleFilter", "tpacf"}  # issue slot utilization below 50 %, in the paper
WAYS = {
    "each SM": 'lab.placement = "capacity"\n',
    "the SMs": 'lab.placement = "sms"\nlab.reserve_by_parts = false\n',
}
PARTS = (1, 2, 4, 6, 8)  # eighths of the GPU
ALONE_S, PART_S, MEASURE_S = 0.8, 0.4, 1.6
KEYS = "lab.latency_target_us = 1\n"


def step_capacity(lab):
    """SiM's kernels alone with parts of the GPU, by capacity of each SM and by whole SMs."""
    _, alone = pairs_and_alone(lab)
    for way, keys in WAYS.items():
        with lab.gpuctld(config=KEYS + keys):
            lab.gpuctl("create-slice", "one")
            sms = lab.sms()
            for kernel in alone:
                measured = [part_of_speed(lab, kernel, sms, part, alone[kernel]) for part in PARTS]
                parts = ", ".join(map(str, PARTS))
                yield f"{kernel}: speed with {parts} eighths of {way}", "", " ".join(f"{s:.2f}" for s in measured)


def step_halves(lab):
    """SiM's pairs, each kernel with half of the GPU, by capacity of each SM and by whole SMs."""
    pairs, alone = pairs_and_alone(lab)
    metrics = {"STP": sum, "ANTT": antt}
    for way, keys in WAYS.items():
        together = {}
        with lab.gpuctld(config=KEYS + keys):
            half = lab.sms() // 2
            for slice_path in ("one", "other"):
                lab.gpuctl("create-slice", slice_path, "--max", half)
            for pair in pairs:
                together[pair] = speeds(alone, pair, rates(lab, ("one", "other"), pair, MEASURE_S))
                measured = ", ".join(f"{metric(together[pair]):.2f}" for metric in metrics.values())
                yield f"{' and '.join(pair)}: {', '.join(metrics)} with half of {way}", "", measured
        for what, some in (("a low-utilization kernel", True), ("none", False)):
            of_group = [of_both for pair, of_both in together.items() if bool(set(pair) & LOW) == some]
            for name, metric in metrics.items() if of_group else ():
                mean = statistics.mean(metric(of_both) for of_both in of_group)
                yield f"pairs with {what}: {name}, mean, half of {way}", "", f"{mean:.2f}"


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


def part_of_speed(lab, kernel, sms, part, alone):
    """Launches a second with so many eighths of the GPU, over those alone and unmanaged."""
    lab.gpuctl("set", "one", f"max={max(1, sms * part // 8)}")
    return rates(lab, ("one",), (kernel,), PART_S)[0] / alone
