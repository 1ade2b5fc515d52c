"""Pairs of kernels side by side under `sim` (adaptive simultaneous multi-tenancy), against one after the other and
against plain MPS.

In each pair one kernel waits for memory and cannot use all SMs, and the other computes. System throughput (STP) is the
sum, over both, of launches a second together divided by launches a second alone and unmanaged; programs that take turns
have 1 together. About 80 s in all. The result of a pair is printed when it is done, with the mean so far.
"""

import statistics

from ..lab.samples import read_samples

PAIRS = (
    ("vectorAdd", "binomialOptions"),
    ("triad", "tpacf"),
    ("spmv", "nbody"),
    ("blackScholes", "md5Hash"),
    ("reduction", "matrixMul"),
)
ALONE_S, LEARN_S, MEASURE_S = 0.8, 2, 1.6


def rates(lab, slices, pair, seconds, learn_s=0.0, priorities=("none", "none")):
    """Launches a second of each, over so many seconds, after the seconds in which the daemon learns. `priorities`: of
    the programs' streams.
    """
    files = [lab.scratch / f"side-by-side-{kernel}" for kernel in pair]
    reports = lab.together(
        *(
            (
                slice_path,
                (
                    kernel,
                    "--size",
                    lab.size("large", "trivial"),
                    "--depth",
                    2,
                    "--seconds",
                    learn_s + seconds,
                    "--check",
                    "last",
                    "--samples",
                    samples,
                    "--priority",
                    priority,
                ),
            )
            for slice_path, kernel, samples, priority in zip(slices, pair, files, priorities)
        )
    )
    if any(report["mismatches"] for report in reports):
        raise RuntimeError(f"{pair}: wrong results")
    programs = [read_samples(samples) for samples in files]
    begin = min(of_one[0]["issue_ns"] for of_one in programs) + learn_s * 1e9
    end = begin + seconds * 1e9
    return [sum(begin < launch["complete_ns"] <= end for launch in of_one) / seconds for of_one in programs]


def step_side_by_side(lab):
    """Pairs of kernels side by side under sim: throughput against one after the other."""
    gains = []
    with lab.gpuctld():
        for slice_path in ("one", "other"):
            lab.gpuctl("create-slice", slice_path)
        lab.gpuctl("set", "/", "policy=sim")
        for pair in PAIRS:
            alone = [rates(lab, (None,), (kernel,), ALONE_S)[0] for kernel in pair]
            mps, sim = rates(lab, (None, None), pair, MEASURE_S), rates(lab, ("one", "other"), pair, MEASURE_S, LEARN_S)
            lab.record(pair=pair, alone=alone, mps=mps, sim=sim)
            parts = [[rate / by_itself for rate, by_itself in zip(of_one, alone)] for of_one in (sim, mps)]
            gains.append(sum(parts[0]) - 1)
            measured = "; ".join(f"{sum(of_one):.2f} ({of_one[0]:.2f} and {of_one[1]:.2f})" for of_one in parts)
            yield (
                f"{pair[0]} and {pair[1]}: STP under sim; plain MPS",
                "",
                f"{measured}; so far {100 * statistics.mean(gains):+.1f} % in the mean",
            )
    yield ("STP over one after the other, mean of the pairs", ">= +9.8 %", f"{100 * statistics.mean(gains):+.1f} %")
