"""FLEP's Figure 17 and EffiSha's Figure 11: what it costs that a kernel can be preempted at all, by workers and by
kernel slicing (subgrid_us of [lab]), and how long a preemption takes.

The kernels are the suite's of those names, at their large size. The overhead is that of a kernel that is never
preempted: GPU time over that of the original, by turns. A preemption takes all SMs; its latency is the time from the
daemon's decision until they are free. EffiSha compares at the same latency: of the subgrids those count then that are
the longest whose latency is no more than that of the workers, or the shortest.
"""

import dataclasses
import random
import statistics
import subprocess
import time

from ..lab.lab import ALWAYS_REWRITTEN
from ..steps.overhead import plain_and_rewritten
from ..steps.storms import REHEARSAL
from .kernels import EFFISHA, FLEP

SUBGRIDS_US = (1000, 500, 250, 125, 62)  # EffiSha's Figure 11: from 1 ms to 0.0625 ms
REHEARSED_US = (20_000, 2_000)
# In place of the length of a subgrid. FLEP's own subgrids are as many blocks as fit on the GPU; no wave is so short.
WORKERS, ONE_WAVE = 0, 1
SHRINKS = 40
LIMIT_S = 8  # for the evictions of one kernel
BUDGET_S = {"FLEP 17": 380, "EffiSha 11": 500}  # then no other kernel begins, and the rows follow


@dataclasses.dataclass
class Found:
    """Of one kernel that is preempted in one way."""

    plain_us: float
    ratio: float  # GPU time over that of the original
    latencies_us: list

    @property
    def latency_us(self):
        return statistics.mean(self.latencies_us) if self.latencies_us else None


def way_name(subgrid_us):
    if subgrid_us == ONE_WAVE:
        return "subgrids of one wave"
    return f"subgrids of {subgrid_us} us" if subgrid_us else "workers"


def at_latency(of_workers, of_subgrids):
    """Those subgrids of one kernel that are compared with its workers. None: a latency is not known. `of_subgrids`:
    what was found, by length."""
    known = {us: found for us, found in of_subgrids.items() if found.latency_us is not None}
    if of_workers.latency_us is None or not known:
        return None
    fit = [us for us, found in known.items() if found.latency_us <= of_workers.latency_us]
    return known[max(fit) if fit else min(known)]


def overhead(ratios):
    """Mean and most, in percent."""
    percents = [100 * (ratio - 1) for ratio in ratios]
    return f"{statistics.mean(percents):+.1f} %, at most {max(percents):+.1f} % ({len(percents)} kernels)"


def kernel_row(kernel, subgrid_us, found):
    latency = "none was preempted" if found.latency_us is None else f"preempted in {found.latency_us:.0f} us"
    most = f", at most {max(found.latencies_us):.0f} us" if found.latencies_us else ""
    return (
        f"{kernel}, {way_name(subgrid_us)}, {found.plain_us:.0f} us: GPU time over the original",
        "<= 1.05" if subgrid_us == WORKERS else "",
        f"{found.ratio:.3f}; {latency}{most} (n={len(found.latencies_us)})",
    )


def rows(paper, names, found):
    """What a figure says. `names`: the suite's. `found`: by way, then by kernel."""
    of = {way: {name: kernels[name] for name in names if name in kernels} for way, kernels in found.items()}
    for way, kernels in of.items():
        if not kernels:
            continue
        latencies = [one.latency_us for one in kernels.values() if one.latency_us is not None]
        said = f"; preempted in {statistics.mean(latencies):.0f} us in the mean" if latencies else ""
        yield (f"{paper}, {way_name(way)}: overhead, mean", "", overhead([k.ratio for k in kernels.values()]) + said)
    subgrids = {way: kernels for way, kernels in of.items() if way != WORKERS}
    chosen = []
    for name, of_workers in of.get(WORKERS, {}).items():
        one = at_latency(of_workers, {way: kernels[name] for way, kernels in subgrids.items() if name in kernels})
        if one:
            chosen.append(one.ratio)
    if chosen:
        yield (f"{paper}, subgrids at the workers' latency: overhead, mean", "", overhead(chosen))


def preempt(lab, shrinks):
    """Takes all SMs from slice s and gives them back, repeatedly, at any moment of its kernels. Returns how long each
    preemption took."""
    times = []
    deadline = time.monotonic() + lab.size(LIMIT_S, 3 * LIMIT_S)
    while len(times) < shrinks and time.monotonic() < deadline:
        grown = time.monotonic() + 1
        while (usage := lab.usage("s"))["holding"] == 0 and time.monotonic() < grown:
            time.sleep(0.001)
        time.sleep(random.uniform(1, 3) * lab.size(0.001, 0.02))
        before = lab.usage("s")["evictions"]
        lab.call("SetSlice", path="s", settings={"max": 0})
        decided = time.monotonic()
        while (usage := lab.usage("s"))["evictions"] <= before and time.monotonic() < decided + lab.size(0.05, 0.3):
            time.sleep(0.0005)
        if usage["evictions"] > before:
            times.append(usage["evict_us_last"])
        lab.call("SetSlice", path="s", settings={"max_unlimited": True})
    return times


def in_subgrids(entry):
    """Of a kernel, as Explain has it: whether all its launches could be subgrids."""
    return entry["form"] == "sliced" and "original form" not in entry["reason"]


def measure(lab, kernel, subgrid_us):
    size = REHEARSAL[kernel] if lab.options.rehearse else ("--size", "large")
    plain_us, ratio, _ = plain_and_rewritten(lab, (kernel, *size, "--depth", 4), rewritten=subgrid_us == WORKERS)
    program = lab.start_bench("s", kernel, *size, "--seconds", 60, "--depth", 2, "--check", "last", "--no-gpu-time")
    program.wait_launching()
    latencies = preempt(lab, lab.size(SHRINKS, 5))
    pid = lab.call("GetSlice", path="s")["clients"][0]["pid"]
    kernels = lab.call("Explain", pid=pid)["kernels"]
    program.stop()
    if wrong := program.report()["mismatches"]:
        raise RuntimeError(f"{wrong} wrong results")
    if subgrid_us != WORKERS and not any(map(in_subgrids, kernels)):
        raise RuntimeError("no kernel was launched in subgrids")
    return Found(plain_us, ratio, latencies), {entry["name"]: entry["form"] for entry in kernels}


def compare(lab, paper, suite, ways):
    found = {}
    until = time.monotonic() + BUDGET_S[paper]
    if lab.options.rehearse:
        suite = [kernel for kernel in suite if kernel in REHEARSAL]
    for way in (WORKERS, *lab.size(ways, REHEARSED_US)):
        found[way] = {}
        with lab.gpuctld(config=ALWAYS_REWRITTEN + f"lab.subgrid_us = {way}\n"), lab.company():
            lab.gpuctl("create-slice", "s")
            for kernel in suite:
                if time.monotonic() > until:
                    yield (f"{kernel}, {way_name(way)}: NOT MEASURED", "", "no time left")
                    continue
                try:
                    found[way][kernel], forms = measure(lab, kernel, way)
                except (RuntimeError, subprocess.SubprocessError) as error:  # of one, which should not hide the others
                    yield (f"{kernel}, {way_name(way)}: NOT MEASURED", "", str(error)[:120])
                    continue
                lab.record(kernel=kernel, subgrid_us=way, forms=forms, **dataclasses.asdict(found[way][kernel]))
                yield kernel_row(kernel, way, found[way][kernel])
    yield from rows(paper, suite, found)


def step_flep_17(lab):
    """FLEP's Figure 17: what preemption by workers and by kernel slicing costs its kernels, and how long it takes."""
    yield from compare(lab, "FLEP 17", FLEP.values(), (*SUBGRIDS_US, ONE_WAVE))


def step_effisha_11(lab):
    """EffiSha's Figure 11: the same of its kernels."""
    yield from compare(lab, "EffiSha 11", EFFISHA.values(), SUBGRIDS_US)
