"""FLEP's amortizing factor and EffiSha's adaptive checking: how many block-tasks a worker does between two looks at the
word that tells it to leave.

FLEP takes, for each kernel, the smallest factor whose overhead is below 4 % (Section 4, Table 1). EffiSha looks after
each block-task ("with proxy" in Figure 10) or after so many as take a fraction of a time slice ("all"). A worker here
looks at each claim, and a chunk is as long as the daemon's target allows. GPUSLICE_CHUNK fixes the number of
block-tasks of each chunk instead; on grids of two dimensions it counts as the next smaller power of two.

The kernels are the suite's of those names, at their large size; the overhead is GPU time over that of the original, by
turns.
"""

import statistics
import subprocess
import time

from ..lab.lab import ALWAYS_REWRITTEN
from ..steps.overhead import plain_and_rewritten
from ..steps.storms import REHEARSAL
from .kernels import EFFISHA, FLEP

FACTORS = (1, 2, 5, 10, 20, 50, 100, 200)
OF_THE_PAPER = {"CFD": 1, "NN": 100, "PF": 150, "PL": 100, "MD": 1, "SPMV": 2, "MM": 2, "VA": 200}
BY_TIME = 0  # in place of a factor
MOST = 1.04
BEGIN_NOTHING_AFTER_S = 400


def smallest(ratios, most=MOST):
    """The smallest factor whose ratio is below `most`; None: there is none. `ratios`: GPU time over the original, by
    factor.
    """
    return min((factor for factor, ratio in ratios.items() if factor != BY_TIME and ratio < most), default=None)


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f} %"


def overheads(ratios):
    return "; ".join(f"{factor or 'by time'}: {percent(ratio)}" for factor, ratio in sorted(ratios.items()))


def flep_rows(found):
    """`found`: ratios by kernel, by the paper's name."""
    chosen = {name: smallest(ratios) for name, ratios in found.items()}
    words = ", ".join(f"{name} {chosen[name] or 'none'} ({OF_THE_PAPER[name]})" for name in found)
    yield ("Table 1: smallest factor with less than 4 % overhead (that of the paper)", "", words)
    kept = [ratios[chosen[name]] for name, ratios in found.items() if chosen[name] and BY_TIME in ratios]
    by_time = [ratios[BY_TIME] for name, ratios in found.items() if chosen[name] and BY_TIME in ratios]
    if kept:
        yield (
            f"overhead with these factors; with chunks sized by time, mean of {len(kept)} kernels",
            "",
            f"{percent(statistics.mean(kept))}; {percent(statistics.mean(by_time))}",
        )


def effisha_rows(found):
    """`found`: ratios by kernel, for chunks of one block-task and by time."""
    both = {name: ratios for name, ratios in found.items() if len(ratios) == 2}
    if both:
        of_all = {factor: statistics.mean(ratios[factor] for ratios in both.values()) for factor in (1, BY_TIME)}
        what = f"overhead, mean of {len(both)} kernels"
        yield (f"Figure 10, a look after each block-task: {what}", "<= 15 %", percent(of_all[1]))
        yield (f"Figure 10, chunks sized by time: {what}", "<= 4 %", percent(of_all[BY_TIME]))


def chunk_of(factor):
    """The environment of a program."""
    return {"GPUSLICE_CHUNK": str(factor)} if factor != BY_TIME else {}


def size_of(lab, kernel):
    """Options of gpuslice-bench."""
    return REHEARSAL[kernel] if lab.options.rehearse else ("--size", "large")


def measure(lab, kernels, factors):
    """Yields (kernel's name, ratios by factor, what failed)."""
    began = time.monotonic()
    for name, kernel in kernels.items():
        if lab.options.rehearse and kernel not in REHEARSAL:
            continue
        ratios, failed = {}, ""
        for factor in factors:
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                failed = "no time left"
                break
            try:
                with lab.environment(**chunk_of(factor)):
                    _, ratios[factor], _ = plain_and_rewritten(lab, (kernel, *size_of(lab, kernel), "--depth", 4))
            except (RuntimeError, subprocess.SubprocessError) as error:  # of one, which should not hide the others
                failed = str(error)[:120]
        lab.record(kernel=kernel, ratios=ratios)
        yield name, ratios, failed


def compare(lab, kernels, factors, found):
    """Fills `found`: ratios by kernel."""
    with lab.gpuctld(config=ALWAYS_REWRITTEN), lab.company():
        lab.gpuctl("create-slice", "s")
        for name, ratios, failed in measure(lab, kernels, factors):
            if ratios:
                found[name] = ratios
                yield (f"{name}, block-tasks of a chunk: overhead", "", overheads(ratios))
            if failed:
                yield (f"{name}: NOT MEASURED in part", "", failed)


def step_factors(lab):
    """FLEP's Table 1: overhead of its kernels with a fixed number of block-tasks between two looks."""
    found = {}
    yield from compare(lab, FLEP, (BY_TIME, *lab.size(FACTORS, (1, 20))), found)
    yield from flep_rows(found)


def step_effisha_10(lab):
    """EffiSha's Figure 10: overhead of its kernels that look after each block-task, and after chunks sized by time."""
    found = {}
    yield from compare(lab, EFFISHA, (BY_TIME, 1), found)
    yield from effisha_rows(found)
