"""FLEP's pairs of kernels (Figures 8, 10 and 11) under hpf and under plain MPS.

The pairs are all of the paper's: 28 in which a long kernel has low priority and a short one high priority, and 28 of
equal priority, with the durations of Table 1 (large inputs, small inputs). Each long kernel meets each short one in its
own time slot. Of N long kernels, the i-th launches in every slot whose number is i modulo N; of M short kernels, the
j-th launches in the slots that are j modulo M; N and M have no common divisor. So one run of all programs at once, each
periodic, has every pair, again and again.
"""

import math
import statistics

from .kernels import FLEP

# Durations in ms on the large and the small input, of the suite's kernels (kernels.py).
TABLE_1 = {
    "CFD": (11.106, 0.521),
    "NN": (15.775, 0.728),
    "PF": (7.364, 0.811),
    "PL": (5.419, 0.952),
    "MD": (15.905, 0.938),
    "SPMV": (5.840, 0.484),
    "MM": (2.579, 1.499),
    "VA": (30.634, 0.720),
}
# Figure 8: each of these on the large input, with low priority, and every other benchmark on the small one.
LOW_PRIORITY = ("CFD", "NN", "PF", "PL")
# Figure 10: each of these on the small input, and every other benchmark on the large one.
SHORT = ("MD", "MM", "SPMV", "VA")
DELAY_MS = 0.1
OFF_MS = 0.08, 0.3  # how much shorter and longer that delay may be
REPETITIONS = 5
# Slices and stream priorities of the long and of the short programs.
MPS, MPS_PRIORITIES = ((None, None), ("none", "none")), ((None, None), ("low", "high"))
HPF, HPF_EQUAL = (("low", "high"), ("none", "none")), (("set", "set"), ("none", "none"))


class Meeting:
    """Long and short applications. Each long one meets each short one except that of its own name; the short one is
    issued delay_ms after the long one, at most so much earlier or later as `off_ms` says. A slot is `stretch` times as
    long as both alone.
    """

    def __init__(self, schedulers, longs, shorts, delay_ms=DELAY_MS, stretch=1.15, off_ms=OFF_MS):
        self.schedulers, self.longs, self.shorts = schedulers, longs, shorts
        self.delay_ms, self.off_ms = delay_ms, off_ms
        self.every = len(shorts)  # slots from one launch of a short one to the next
        while math.gcd(len(longs), self.every) > 1:
            self.every += 1
        longest_ms = max(a.plain_ms for a in longs) + max(a.plain_ms for a in shorts)
        self.slot_ms = stretch * longest_ms + 3 + delay_ms

    def run(self, side, repetitions):
        """Runs the pairs. Returns for each pair of names the list of its repetitions: (issued, completed) of the long
        and of the short kernel, in ms.
        """
        (low, high), (of_low, of_high) = side
        slots = repetitions * len(self.longs) * self.every
        members, starts = [], []
        for at, application in enumerate(self.longs):
            members.append((low, application, self.periodic(len(self.longs), slots, of_low)))
            starts.append(at * self.slot_ms)
        for at, application in enumerate(self.shorts):
            members.append((high, application, self.periodic(self.every, slots, of_high)))
            starts.append(at * self.slot_ms + self.delay_ms)
        programs = self.schedulers.start(members)
        times = self.schedulers.finish(programs, self.schedulers.begin(programs, starts))
        self.schedulers.lab.record(
            meeting=[application.name for _, application, _ in members], slot_ms=self.slot_ms, times_ms=times
        )
        pairs = {}
        for slot in range(slots):
            long, short = slot % len(self.longs), slot % self.every
            if short >= len(self.shorts) or self.longs[long].name == self.shorts[short].name:
                continue
            both = times[long][slot // len(self.longs)], times[len(self.longs) + short][slot // self.every]
            pairs.setdefault((self.longs[long].name, self.shorts[short].name), []).append(
                tuple((issued - slot * self.slot_ms, completed - slot * self.slot_ms) for issued, completed in both)
            )
        return pairs

    def periodic(self, every, slots, priority):
        """The options of a program that launches in one of so many slots, and once more: a program that is done then
        makes one more launch to check its result.
        """
        period_us = self.schedulers.ms(every * self.slot_ms) * 1000
        return (
            "--arrival",
            "periodic",
            "--period-us",
            period_us,
            "--count",
            slots // every + 1,
            "--priority",
            priority,
        )

    def summaries(self, side, repetitions=REPETITIONS):
        """The summary() of each pair; pairs without enough repetitions are left out."""
        return self.rounds(side, 1, repetitions)[0]

    def rounds(self, side, rounds, repetitions=REPETITIONS):
        """The same for each of several rounds of so many repetitions, in one start of the programs."""
        lab = self.schedulers.lab
        of_round = lab.size(repetitions, 1)
        least = lab.size(repetitions // 2 + 1, 1)  # in which both programs were woken in time
        alone = {"long": {a.name: a.plain_ms for a in self.longs}, "short": {a.name: a.plain_ms for a in self.shorts}}
        found = [{} for _ in range(rounds)]
        for (long, short), times in self.run(side, rounds * of_round).items():
            for number, summaries in enumerate(found):
                part = times[number * of_round : (number + 1) * of_round]
                kept = [rep for rep in part if in_time(lab, rep, self.delay_ms, self.off_ms)]
                if len(kept) >= least:
                    summaries[long, short] = summary(
                        self.schedulers, (alone["long"][long], alone["short"][short]), kept
                    )
        return found


def in_time(lab, repetition, delay_ms, off_ms):
    """Whether the short kernel arrived as long after the long one as it was to."""
    late = repetition[1][0] - repetition[0][0]
    early_ms, late_ms = lab.size(off_ms, (1000, 1000))
    return delay_ms - early_ms < late < delay_ms + late_ms


def summary(schedulers, alone_ms, repetitions):
    """The metrics of a pair (long, short), and its medians over the repetitions."""
    antt, stp, _ = schedulers.metrics(alone_ms, list(zip(*repetitions)))
    return {
        "antt": antt,
        "stp": stp,
        "repetitions": repetitions,
        "gap": statistics.median(short[0] - long[0] for long, short in repetitions),
        "short": statistics.median(end - begin for _, (begin, end) in repetitions),
        "both": statistics.median(max(long[1], short[1]) - long[0] for long, short in repetitions),
    }


def simulated(schedulers, large, small, measured, dispatch_ms, preempt_ms):
    """Simulates these pairs (long, short) of equal priority under hpf, each on its own GPU. Returns (ANTT, STP) by
    pair.
    """
    members = []
    for device, ((long, short), at) in enumerate(measured.items()):
        for name, application, start_ms in ((long, large[long], 0), (short, small[short], at["gap"])):
            members.append(
                (f"{long}_{short}/{name}", max(application.managed_ms - dispatch_ms, 0.001), device, start_ms, 0)
            )
    found = {}
    for _, turnarounds in schedulers.simulate("flep", members, ("hpf",), dispatch_ms, preempt_ms) if members else ():
        for long, short in measured:
            both = [[(0, turnarounds[f"{long}_{short}/{name}"])] for name in (long, short)]
            found[long, short] = schedulers.metrics((large[long].managed_ms, small[short].managed_ms), both)[:2]
    return found


def words(at):
    return f"{at['short']:.3f} ms, ANTT {at['antt']:.2f}, STP {at['stp']:.2f}, both {at['both']:.2f} ms"


def applications(schedulers):
    """The applications by name, on the large and on the small input; measures their times alone."""
    lab = schedulers.lab
    low, short = lab.size((LOW_PRIORITY, SHORT), (("PF",), ("MD", "MM")))
    others = lab.size(tuple(TABLE_1), ("PF", "MD", "MM"))
    large = {
        name: schedulers.application(name, TABLE_1[name][0], FLEP[name])
        for name in others
        if lab.size(True, name == "PF")
    }
    small = {
        name: schedulers.application(name, TABLE_1[name][1], FLEP[name])
        for name in others
        if lab.size(True, name != "PF")
    }
    schedulers.measure_alone(
        [(large[name], TABLE_1[name][0]) for name in large] + [(small[name], TABLE_1[name][1]) for name in small]
    )
    return large, small, low, short


def mean(values):
    return statistics.mean(values) if values else math.nan


def pairs(schedulers, costs):
    """Runs the pairs. `costs`: of a switch and of a preemption, in ms, for the simulator."""
    large, small, low, short = applications(schedulers)
    for inputs, known in (("large", large), ("small", small)):
        yield (
            f"FLEP, {inputs} inputs alone: plain, in a slice, ms",
            "",
            "; ".join(f"{name} {a.plain_ms:.3f}, {a.managed_ms:.3f} ({a.kernel})" for name, a in known.items()),
        )

    # Figure 8.
    meeting = Meeting(schedulers, [large[name] for name in low], list(small.values()))
    mps, prioritized, hpf = (meeting.summaries(side) for side in (MPS, MPS_PRIORITIES, HPF))
    speedups, later = [], []
    for pair in hpf:
        if pair not in mps:
            continue
        speedups.append(mps[pair]["short"] / hpf[pair]["short"])
        later.append(hpf[pair]["short"] - small[pair[1]].managed_ms)
        sides = {"MPS": mps, "MPS, stream priorities": prioritized, "hpf": hpf}
        yield (
            f"{pair[0]}_{pair[1]}, low and high priority: {speedups[-1]:.1f} times as fast",
            "",
            "; ".join(f"{side}: {words(at[pair])}" for side, at in sides.items() if pair in at),
        )
    yield (
        "Figure 8: high-priority speed-up over plain MPS, mean of the pairs; how many",
        ">= 10",
        f"{mean(speedups):.1f}; {len(speedups)}",
    )
    yield (
        "high priority: later than in a slice alone, median of the pairs",
        "",
        f"{1000 * statistics.median(later):.0f} us",
    )

    # Figures 10 and 11.
    meeting = Meeting(schedulers, list(large.values()), [small[name] for name in short])
    mps, hpf = (meeting.summaries(side) for side in (MPS, HPF_EQUAL))
    antts, most, longer, lost = [], [], [], []
    for pair in hpf:
        if pair not in mps:
            continue
        antts.append(mps[pair]["antt"] / hpf[pair]["antt"])
        most.append(mps[pair]["antt"] / (1 + small[pair[1]].plain_ms / large[pair[0]].plain_ms / 2))
        longer.append(hpf[pair]["both"] / mps[pair]["both"] - 1)
        lost.append(1 - hpf[pair]["stp"] / mps[pair]["stp"])
        yield (
            f"{pair[0]}_{pair[1]}, equal priority: ANTT {antts[-1]:.1f} times better",
            "",
            f"MPS: {words(mps[pair])}; hpf: {words(hpf[pair])}",
        )
    yield (
        "Figure 10: ANTT, better than plain MPS, mean of the pairs; if preemption cost nothing; how many",
        ">= 8",
        f"{mean(antts):.1f}; {mean(most):.1f}; {len(antts)}",
    )
    yield ("Figure 11: STP lost, mean of the pairs (negative: won)", "<= 5.4 %", f"{100 * mean(lost):.1f} %")
    yield (
        "time until both are done, longer than under MPS, mean of the pairs",
        "<= 5.4 %",
        f"{100 * mean(longer):.1f} %",
    )
    differences = {"ANTT": [], "STP": []}
    for (long, short), expected in simulated(schedulers, large, small, hpf, *costs).items():
        alone = (large[long].managed_ms, small[short].managed_ms)
        ours = schedulers.metrics(alone, list(zip(*hpf[long, short]["repetitions"])))
        for metric, here, there in zip(differences, ours, expected):
            differences[metric].append(here / there - 1)
    for metric, found in differences.items():
        yield (
            f"Figure 10's pairs under hpf: {metric} measured over simulated, mean; the worst pair",
            "<= 10 %",
            f"{100 * mean(found):+.1f} %; {100 * max(map(abs, found), default=math.nan):.1f} %",
        )
