"""SMGuard's Figure 17, turnaround: the wall time of whole programs in a slice, with all rewritten that can be, over
that of the same programs without gpuctl.

A program is gpuslice-bench from its start to its end: it makes its inputs, copies them to the GPU, and launches its
kernel, for as long in all as the benchmark runs in Table 3. The sides take turns. Of those in the slice the first
compiles the rewritten form; it is shown and not counted.
"""

import dataclasses
import statistics
import subprocess
import time

from ..lab.lab import ALWAYS_REWRITTEN
from ..steps.programs import over_plain
from ..steps.storms import REHEARSAL
from .kernels import SMGUARD
from .smguard import BATCH, LS

PAIRS = 7
MOST_LAUNCHES = 10_000
BEGIN_NOTHING_AFTER_S = 300
A_PROGRAM_S = 60


@dataclasses.dataclass
class Found:
    """Of one program; in seconds."""

    launches: int
    first_s: float  # in the slice
    pairs: list  # plain, and in the slice

    @property
    def plain_s(self):
        return statistics.median(plain for plain, _ in self.pairs)

    @property
    def ratio(self):
        return statistics.median(in_slice / plain for plain, in_slice in self.pairs)


def launches_for(milliseconds, kernel_us):
    """How many launches of a kernel take about so long in all."""
    return max(1, min(MOST_LAUNCHES, round(1000 * milliseconds / kernel_us)))


def rows(found):
    """`found`: by the paper's name."""
    for name, one in found.items():
        yield (
            f"{name}, {one.launches} launches, {1000 * one.plain_s:.0f} ms: turnaround over the original's",
            "",
            f"{over_plain(one.pairs)}; the first time {one.first_s / one.plain_s:.2f}",
        )
    if found:
        most = max(found, key=lambda name: found[name].ratio)
        mean = statistics.mean(one.ratio for one in found.values())
        yield (
            f"Figure 17: turnaround over the original's, mean of {len(found)} programs; most",
            "<= +1.58 %",
            f"{100 * (mean - 1):+.2f} %; {100 * (found[most].ratio - 1):+.2f} % ({most})",
        )


def turnaround_s(lab, slice_path, arguments):
    began = time.monotonic()
    program = lab.start_bench(slice_path, *arguments, limit_s=A_PROGRAM_S)
    program.finish()
    return time.monotonic() - began


def measure(lab, name):
    kernel = SMGUARD[name]
    size = REHEARSAL[kernel] if lab.options.rehearse else ("--size", "large")
    milliseconds = {**LS, **BATCH}[name]
    kernel_us = lab.bench(None, kernel, *size, "--count", 5, "--check", "none")["gpu_us"]["p50"]
    launches = lab.size(launches_for(milliseconds, kernel_us), 2)
    once = ("--count", launches, "--depth", 2, "--warmup", 0, "--check", "none", "--no-gpu-time")
    first_s = turnaround_s(lab, "s", (kernel, *size, *once))
    pairs = []
    for number in range(lab.size(PAIRS, 2)):
        seconds = {}
        for side in (None, "s") if number % 2 == 0 else ("s", None):
            seconds[side] = turnaround_s(lab, side, (kernel, *size, *once))
        pairs.append((seconds[None], seconds["s"]))
    return Found(launches, first_s, pairs)


def step_smguard_17(lab):
    """SMGuard's Figure 17: wall time of whole programs with rewritten kernels, over that of the original ones."""
    began = time.monotonic()
    found = {}
    with lab.gpuctld(config=ALWAYS_REWRITTEN), lab.company():
        lab.gpuctl("create-slice", "s")
        for name in lab.size(SMGUARD, [name for name, kernel in SMGUARD.items() if kernel in REHEARSAL]):
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"{name}: NOT MEASURED", "", "no time left")
                continue
            try:
                found[name] = measure(lab, name)
            except (RuntimeError, subprocess.SubprocessError) as error:  # of one, which should not hide the others
                yield (f"{name}: NOT MEASURED", "", str(error)[:120])
                continue
            lab.record(program=name, **dataclasses.asdict(found[name]))
    yield from rows(found)
