"""EffiSha's Figures 12, 14 and 15: its eleven kernels (Table 3, 3 ms apart) under piv, dprr and MPS with nothing set,
for each of its three assignments of priorities. The kernels are the suite's, with the paper's durations.

MPS knows no priorities, so it is measured once, and is the default that the paper compares with.
"""

import statistics
import tomllib

from .effisha import ASSIGNMENTS, WORKLOADS, slice_of
from .kernels import EFFISHA
from .schedulers import Schedulers

POLICIES = ("piv", "dprr")
MPS = "MPS"
REPETITIONS = 6
REHEARSED = ("Scan", "Triad", "FFT")  # the shortest


def figures(alone_ms, launches):
    """Of one side. `launches`: for each kernel, the (begin, end) of its repetitions; times alone in the same order."""
    repetitions = list(zip(*launches))
    slowdowns = [
        [(end - begin) / alone for alone, (begin, end) in zip(alone_ms, repetition)] for repetition in repetitions
    ]
    return {
        "ntt": [statistics.mean(of_one) for of_one in zip(*slowdowns)],
        "mean": [statistics.mean(of_all) for of_all in slowdowns],
        "stp": [sum(1 / ntt for ntt in of_all) for of_all in slowdowns],
        "until": [max(end for _, end in repetition) - repetition[0][0] for repetition in repetitions],
    }


def with_range(values):
    return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def rows(what, names, found, default=None):
    """The rows of a side; `default`: the figures of MPS."""
    yield f"EffiSha, {what}: mean NTT, and range of the repetitions", "", with_range(found["mean"])
    yield f"EffiSha, {what}: STP", "", with_range(found["stp"])
    ntts = ", ".join(f"{name} {ntt:.2f}" for name, ntt in zip(names, found["ntt"]))
    yield f"EffiSha, {what}: NTT", "", ntts
    if default:
        longer = statistics.mean(found["until"]) / statistics.mean(default["until"]) - 1
        yield f"EffiSha, {what}: time until all are done, longer than under MPS", "<= 5 %", f"{100 * longer:.1f} %"


def step_effisha(lab):
    """EffiSha's kernels under piv, dprr and MPS, for its three assignments of priorities."""
    with lab.gpuctld():
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        assignments = ASSIGNMENTS[: lab.size(3, 1)]
        workloads = {
            name: tomllib.loads((WORKLOADS / f"effisha-{name}.toml").read_text(encoding="utf-8"))
            for name in assignments
        }
        kernels = {
            name: [kernel for kernel in workload["application"] if lab.size(True, kernel["name"] in REHEARSED)]
            for name, workload in workloads.items()
        }
        first = kernels[assignments[0]]
        applications = [
            schedulers.application(kernel["name"], kernel["alone_ms"], EFFISHA[kernel["name"]]) for kernel in first
        ]
        schedulers.measure_alone([(one, kernel["alone_ms"]) for one, kernel in zip(applications, first)])
        for priority in {kernel["priority"] for members in kernels.values() for kernel in members}:
            lab.gpuctl("create-slice", slice_of(priority), "--priority", priority)
        names = [application.name for application in applications]
        starts = [position * workloads[assignments[0]]["arrivals"]["gap_ms"] for position in range(len(names))]
        period_ms = 1.5 * sum(kernel["alone_ms"] for kernel in first) + 10

        def run(what, slices, alone_ms):
            launches = schedulers.run(
                [(path, application, ()) for path, application in zip(slices, applications)],
                starts,
                period_ms,
                lab.size(REPETITIONS, 1),
            )
            lab.record(effisha=what, alone_ms=alone_ms)
            return figures(alone_ms, launches)

        default = run(MPS, [None] * len(names), [application.plain_ms for application in applications])
        yield from rows(MPS, names, default)
        for assignment, members in kernels.items():
            for policy in POLICIES:
                lab.gpuctl("set", "/", f"policy={policy}")
                what = f"{assignment} priorities, {policy}"
                slices = [slice_of(kernel["priority"]) for kernel in members]
                found = run(what, slices, [application.managed_ms for application in applications])
                yield from rows(what, names, found, default)
        yield ("wrong results", "0", str(schedulers.wrong))
