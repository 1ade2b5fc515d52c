"""FLEP's Figures 9, 12, 15 and 16: short kernels that come later, triplets of equal priority, and short kernels that
fill few SMs, which take these SMs alone or some more. Durations and kernels as in flep.py.

Figure 12's triplets are those of tests/workloads/flep-triplets.toml. In Figures 15 and 16 the short kernel
is `work` that fills an eighth of the SMs for half a millisecond, and then each kernel of TRIVIAL, on an input of so few
blocks; the overhead is how much later the long kernel ends than alone in a slice.
"""

import statistics
import time
import tomllib

from .effisha import WORKLOADS
from .flep import HPF, HPF_EQUAL, LOW_PRIORITY, MPS, MPS_PRIORITIES, TABLE_1, Meeting
from .kernels import FLEP
from .schedulers import TASK_US, Application, Schedulers

DELAYS_MS = (0.1, 2, 4, 6, 8, 10)
EXTRA_SMS = (0, 4, 8, 16, 32)
FEW = 1 / 8  # of the SMs
FEW_MS = 0.5
WORK_BLOCKS_OF_SM = 8  # 256 threads each
# Table 1's trivial inputs, which take 49 to 90 us on its K40: extents with at most a thread for each place on an
# eighth of an H100's SMs, and those for the software GPU.
TRIVIAL = {
    "NN": ((32_003,), (1_003,)),
    "MD": ((32_005,), (203,)),
    "SPMV": ((16_001, 100), (101, 20)),
    "VA": ((32_011,), (1_011,)),
}
TRIVIAL_MS = 0.1  # that they have when they run alone, before the next one comes
REPETITIONS = 3
# Of Figures 15 and 16: a run of three lasts a quarter of a second, and one late program decides its row.
SPATIAL_REPETITIONS = 21
REHEARSED = ("PF", "MM")
BEGIN_NOTHING_AFTER_S = 380


def by_delay(speed_ups, alone_ms):
    """Figure 9 of one long kernel: its share that had run when the short ones came, and their mean speed-up over MPS.
    `speed_ups`: by delay in ms, then by short kernel; of delays at which the long one still ran.
    """
    return ", ".join(
        f"{100 * delay / alone_ms:.0f} %: {statistics.mean(ups.values()):.1f}"
        for delay, ups in sorted(speed_ups.items())
        if ups and delay < alone_ms
    )


def delayed(schedulers, large, small):
    """Rows of Figure 9."""
    lab = schedulers.lab
    sides = {"MPS": MPS, "MPS, stream priorities": MPS_PRIORITIES, "hpf": HPF}
    found = {side: {} for side in sides}
    lab.gpuctl("set", "/", "policy=hpf")
    for delay_ms in lab.size(DELAYS_MS, DELAYS_MS[:2]):
        meeting = Meeting(schedulers, list(large.values()), list(small.values()), delay_ms)
        for side, of in sides.items():
            found[side][delay_ms] = meeting.summaries(of, REPETITIONS)
    for side in list(sides)[1:]:
        for long, application in large.items():
            ups = {
                delay: {
                    pair[1]: found["MPS"][delay][pair]["short"] / at["short"]
                    for pair, at in pairs.items()
                    if pair[0] == long and pair in found["MPS"][delay]
                }
                for delay, pairs in found[side].items()
            }
            yield (
                f"Figure 9, {side}: speed-up over MPS of kernels that come when so much of {long} has run",
                "falls to 1",
                by_delay(ups, application.plain_ms),
            )


def of_triplet(schedulers, one):
    name = one["name"].split("/")[1]
    return schedulers.application(name, one["alone_ms"], FLEP[name])


def triplets(schedulers, policy, figure, least_better):
    """The row of the triplets under a policy, of a figure in which they are so much better than under plain MPS."""
    lab = schedulers.lab
    workload = tomllib.loads((WORKLOADS / "flep-triplets.toml").read_text(encoding="utf-8"))
    members = {}
    for one in workload["application"]:
        members.setdefault(one["name"].split("/")[0], []).append(one)
    better = {}
    lab.gpuctl("set", "/", f"policy={policy}")
    for triplet, of in list(members.items())[: lab.size(None, 1)]:
        applications = [of_triplet(schedulers, one) for one in of]
        antts = {}
        for side in (None, "set"):
            launches = schedulers.run(
                [(side, application, ()) for application in applications],
                [one["start_ms"] for one in of],
                1.5 * sum(one["alone_ms"] for one in of) + 3,
                lab.size(REPETITIONS, 1),
            )
            antts[side] = schedulers.metrics([one["alone_ms"] for one in of], launches)[0]
        better[triplet] = antts[None] / antts["set"]
        lab.record(triplet=triplet, antt={"MPS": antts[None], policy: antts["set"]})
    best, least = max(better, key=better.get), min(better, key=better.get)
    yield (
        f"{figure}: ANTT under {policy}, better than plain MPS, mean of {len(better)} triplets; most; least",
        f">= {least_better}",
        f"{statistics.mean(better.values()):.2f}; {better[best]:.2f} ({best}); {better[least]:.2f} ({least})",
    )


def few_blocks(schedulers):
    """A kernel that fills an eighth of the SMs for half a millisecond, in one wave."""
    blocks = max(1, round(schedulers.lab.sms() * FEW)) * WORK_BLOCKS_OF_SM
    return Application("few", "work", (blocks, round(schedulers.iterations * 1000 * FEW_MS / TASK_US)))


def overhead_ms(found, large):
    """By how much the long kernels end later than alone, mean of those that were measured."""
    return statistics.mean(at["both"] - large[long].managed_ms for (long, _), at in found.items())


def measured_everywhere(sides):
    """The same sides, each with only the pairs that all of them have. A side without its slowest pair would look
    better than one with it.
    """
    common = set.intersection(*(set(found) for found in sides.values()))
    return {side: {pair: at for pair, at in found.items() if pair in common} for side, found in sides.items()}


def turnaround_ms(found):
    """Of the short kernel, the mean over the long kernels that it meets."""
    return statistics.mean(at["short"] for at in found.values())


def turnaround_words(found):
    beside = {}
    for (long, _), at in sorted(found.items()):
        beside.setdefault(long, []).append(at["short"])
    words = ", ".join(f"{long} {statistics.mean(times):.2f}" for long, times in beside.items())
    return f"{turnaround_ms(found):.3f} ms ({words})"


def trivial(schedulers):
    size = schedulers.lab.size
    names = [name for name in TRIVIAL if size(True, name in ("NN", "VA"))]
    return [Application(f"{name} trivial", FLEP[name], size(*TRIVIAL[name])) for name in names]


def spatial(schedulers, large):
    """The rows of Figures 15 and 16."""
    few = few_blocks(schedulers)
    small = trivial(schedulers)
    schedulers.measure_alone([(few, FEW_MS), *((one, TRIVIAL_MS) for one in small)])
    yield from of_few(schedulers, large, [few], "a kernel on an eighth of the SMs", SPATIAL_REPETITIONS)
    yield from of_few(schedulers, large, small, "trivial inputs", SPATIAL_REPETITIONS // 3)


def of_few(schedulers, large, small, what, repetitions):
    """The rows for some short kernels."""
    lab = schedulers.lab
    meeting = Meeting(schedulers, list(large.values()), small)
    measured = {}
    for policy in ("hpf", "hpf:spatial"):
        lab.gpuctl("set", "/", f"policy={policy}")
        measured[policy] = meeting.summaries(HPF_EQUAL, repetitions)
    costs = {}
    for policy, found in measured_everywhere(measured).items():
        costs[policy] = overhead_ms(found, large)
        yield (
            f"{what}, {policy}: turnaround; the long one ends later by",
            "",
            f"{turnaround_words(found)}; {costs[policy]:.3f} ms",
        )
    saved = 1 - costs["hpf:spatial"] / costs["hpf"]
    yield (f"Figure 15, {what}: overhead saved by spatial preemption", ">= 31 %", f"{100 * saved:.0f} %")
    measured = {}
    for extra in lab.size(EXTRA_SMS, EXTRA_SMS[:2]):
        lab.gpuctl("set", "/", f"policy=hpf:spatial:extra={extra}")
        measured[extra] = meeting.summaries(HPF, repetitions)
    measured = measured_everywhere(measured)
    yield (
        f"Figure 16, {what}: speed-up with so many SMs more than are filled",
        "",
        ", ".join(f"{extra}: {turnaround_ms(measured[0]) / turnaround_ms(of):.2f}" for extra, of in measured.items()),
    )
    yield (
        f"{what}: turnaround with so many more",
        "",
        "; ".join(f"{extra}: {turnaround_words(of)}" for extra, of in measured.items()),
    )


def step_flep(lab):
    """FLEP's Figures 9, 12, 15 and 16: delays, triplets, spatial preemption and SMs beyond what a kernel fills."""
    began = time.monotonic()
    with lab.gpuctld():
        lab.gpuctl("create-slice", "high", "--priority", 10)
        lab.gpuctl("create-slice", "low")
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        inputs = []
        for names, column in ((LOW_PRIORITY, 0), (TABLE_1, 1)):
            chosen = [name for name in names if lab.size(True, name in REHEARSED)]
            inputs.append({name: schedulers.application(name, TABLE_1[name][column], FLEP[name]) for name in chosen})
        large, small = inputs
        schedulers.measure_alone(
            [(one, TABLE_1[name][column]) for column, of in enumerate(inputs) for name, one in of.items()]
        )
        for what, rows in (
            ("Figures 15 and 16", spatial(schedulers, large)),
            ("Figure 12", triplets(schedulers, "hpf", "Figure 12", 6.6)),
            ("Figure 9", delayed(schedulers, large, small)),
        ):
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"{what}: NOT MEASURED", "", "no time left")
            else:
                yield from rows
        yield ("wrong results", "0", str(schedulers.wrong))


def step_reorder(lab):
    """FLEP's 6.3.2: its triplets, the shortest first, without preemption (sjf:to_end)."""
    with lab.gpuctld():
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        yield from triplets(schedulers, "sjf:to_end", "6.3.2", 1.023)
        yield ("wrong results", "0", str(schedulers.wrong))
