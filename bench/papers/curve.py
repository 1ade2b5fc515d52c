"""The preemption curve: what it costs that workers look for their leave, against how soon they then leave.

A worker looks after each chunk of block-tasks. GPUSLICE_CHUNK fixes how many that are; without it chunks are sized by
time. Overhead is GPU time over the original's, by turns; the delay is that of a storm of random grants. How often the
daemon's word is read is kPollEveryNs in src/ptx/persistent_abi.h: a build with another value has its own curve.
"""

import subprocess

from ..lab.lab import ALWAYS_REWRITTEN
from ..steps.overhead import plain_and_rewritten
from ..steps.storms import REHEARSAL, storm
from .factors import BY_TIME, chunk_of, percent, size_of
from .kernels import FLEP

KERNELS = ("VA", "NN", "SPMV", "MM")  # of one launch, with block-tasks of 1 to 60 us
CHUNKS = (BY_TIME, 1, 2, 5, 20, 100)
EVICTIONS, STORM_S = 400, 4


def points(lab, chunks, measure):
    """By kernel and block-tasks of a chunk: what `measure` finds for the kernel, or None; and what failed."""
    found = {}
    for name in KERNELS:
        if lab.options.rehearse and FLEP[name] not in REHEARSAL:
            continue
        for number in chunks:
            try:
                with lab.environment(**chunk_of(number)):
                    found[name, number] = measure(lab, FLEP[name]), ""
            except (RuntimeError, subprocess.SubprocessError) as error:  # of one, which should not hide the others
                found[name, number] = None, str(error)[:120]
    return found


def overhead(lab, kernel):
    """GPU time over that of the original."""
    return plain_and_rewritten(lab, (kernel, *size_of(lab, kernel), "--depth", 4))[1]


def stormed(lab, kernel):
    """The slice's usage after a storm."""
    program = lab.start_bench("s", kernel, *size_of(lab, kernel), "--depth", 2, "--seconds", 40, "--check", "last")
    program.wait_launching()
    usage = storm(lab, program, lab.size(EVICTIONS, 3), STORM_S)
    wrong = program.report()["mismatches"]
    if wrong or not usage["evictions"]:
        raise RuntimeError(f"{wrong} WRONG, {usage['evictions']} evictions")
    return usage


def rows(ratios, usages):
    """`ratios`, `usages`: by kernel and block-tasks of a chunk, what was measured and what failed."""
    for at, (ratio, failed) in ratios.items():
        usage, failed_too = usages[at]
        name, number = at
        chunk = f"{number} block-tasks" if number != BY_TIME else "sized by time"
        cost = percent(ratio) if ratio is not None else f"NOT MEASURED: {failed}"
        left = (
            f"{usage['evict_us_mean']:.0f} us, at most {usage['evict_us_max']:.0f}, {usage['evictions']} evictions"
            if usage is not None
            else f"NOT MEASURED: {failed_too}"
        )
        yield (f"{name}, chunks {chunk}: overhead; left after", "", f"{cost}; {left}")


def compare(lab, chunks):
    with lab.gpuctld(config=ALWAYS_REWRITTEN), lab.company():
        lab.gpuctl("create-slice", "s")
        ratios = points(lab, chunks, overhead)
    with lab.gpuctld("--evict-storm", lab.size(200, 3000), config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        usages = points(lab, chunks, stormed)
    for at in ratios:
        lab.record(kernel=at[0], chunk=at[1], ratio=ratios[at][0], usage=usages[at][0])
    yield from rows(ratios, usages)


def step_curve(lab):
    """The preemption curve: overhead against the delay of an eviction, by the length of a chunk."""
    yield from compare(lab, lab.size(CHUNKS, (BY_TIME, 1)))


def step_curve_by_time(lab):
    """One point of each kernel, for builds with another kPollEveryNs."""
    yield from compare(lab, (BY_TIME,))
