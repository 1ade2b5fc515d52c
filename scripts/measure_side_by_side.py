"""Pairs of kernels side by side under `sim` (adaptive simultaneous multi-tenancy), against one after the other and against plain MPS.

In each pair one kernel waits for memory and has no use for all SMs, and the other computes. System throughput (STP) is the sum, over
both, of launches a second together by launches a second alone and unmanaged; programs that take turns have 1 together.
"""
import statistics

PAIRS = (("vectorAdd", "binomialOptions"), ("triad", "tpacf"), ("spmv", "nbody"), ("blackScholes", "md5Hash"), ("reduction", "matrixMul"))
LEARN_S, MEASURE_S = 2, 2


def rates(lab, slices, pair, seconds):
    reports = lab.together(*((slice_path, (kernel, "--size", lab.size("large", "trivial"), "--depth", 2, "--seconds", seconds, "--check", "last"))
                             for slice_path, kernel in zip(slices, pair)))
    if any(report["mismatches"] for report in reports):
        raise RuntimeError(f"{pair}: wrong results")
    return [report["launches"] / seconds for report in reports]


def step_side_by_side(lab):
    """Pairs of kernels side by side under sim: throughput against one after the other."""
    gains = []
    with lab.gpuctld():
        for slice_path in ("one", "other"):
            lab.gpuctl("create-slice", slice_path)
        lab.gpuctl("set", "/", "policy=sim")
        for pair in PAIRS:
            alone = [rates(lab, (None,), (kernel,), MEASURE_S / 2)[0] for kernel in pair]

            def stp(slices, seconds):
                together = rates(lab, slices, pair, seconds)
                return sum(rate / by_itself for rate, by_itself in zip(together, alone)), together

            mps, of_mps = stp((None, None), MEASURE_S)
            stp(("one", "other"), LEARN_S)
            managed, of_managed = stp(("one", "other"), MEASURE_S)
            gains.append(managed - 1)
            lab.record(pair=pair, alone=alone, mps=of_mps, sim=of_managed)
            shares = ["{:.2f} and {:.2f}".format(*(rate / by_itself for rate, by_itself in zip(of_one, alone))) for of_one in (of_managed, of_mps)]
            yield (f"{pair[0]} and {pair[1]}: STP under sim; plain MPS", "", f"{managed:.2f} ({shares[0]}); {mps:.2f} ({shares[1]})")
    yield ("STP over one after the other, mean of the pairs", ">= +9.8 %", f"{100 * statistics.mean(gains):+.1f} %")
