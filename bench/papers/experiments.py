"""The papers' experiments, each beside all that can stand in for it. A play is one start of all programs of a side."""

import math
import statistics
import time
import tomllib

from ..corun.configurations import MANAGED, MPS, TIME_SLICED, OfSms
from . import bootstrap, flep, frs, smguard, torch_applications
from .effisha import ASSIGNMENTS, WORKLOADS
from .kernels import EFFISHA, FLEP, SMGUARD
from .kernels import FRS as FRS_KERNELS
from .schedulers import FRS, GAP_MS, Schedulers
from .sides import Side, isolated, stock

GAP_S = 0.2  # in which what is in force changes between two of the periods that count
LOW_HIGH = (("low", ()), ("high", ("--priority", 10)))


class Programs(Schedulers):
    """Programs by role: in the slice of that name, or with the environment that a side of NVIDIA's means gives it."""

    side = None
    checks = True  # whether a last result is compared with the CPU's, for which programs start more slowly

    def start(self, members, period=None, check="last"):
        return super().start(members, period, check if self.checks else "none")

    def start_one(self, where, command):
        if self.side is None:
            return super().start_one(where, command)
        with self.lab.environment(**self.side.env.get(where, {})):
            return super().start_one(where if self.side.ours else None, command)

    def live(self, members, starts_ms, period_ms, repetitions, variants):
        """run(), with all variants in one start of the programs: between two of them, for some periods that do not
        count, each is brought about by its function. Returns the launches by variant.
        """
        of_variant = repetitions + math.ceil(1000 * self.lab.size(GAP_S, 5 * GAP_S) / self.ms(period_ms))
        count = of_variant * len(variants)
        programs = self.start(members, (self.ms(period_ms) * 1000, count + 1))
        changes = list(variants.values())
        changes[0]()
        began = self.begin(programs, starts_ms)
        for number, change in enumerate(changes[1:], 1):
            last_ms = (number * of_variant - (of_variant - repetitions) + 0.5) * period_ms
            time.sleep(max(0, (began - time.monotonic_ns()) / 1e9 + self.ms(last_ms) / 1000))
            change()
            if time.monotonic_ns() > began + self.ms(number * of_variant * period_ms) * 1e6:
                raise RuntimeError("the settings were late")
        times = self.finish(programs, began)
        found = {}
        for number, name in enumerate(variants):
            first = number * of_variant
            found[name] = [
                [(a - k * period_ms, b - k * period_ms) for k, (a, b) in enumerate(of_one)][first:][:repetitions]
                for of_one in times
            ]
        return found


class NotHere(Exception):
    """What an experiment needs is not here."""


class Experiment:
    """`sides` are played by turns. play() returns what one start comes to, by what is a row's side."""

    name = paper = ""
    sides = ()

    def __init__(self, lab, programs):
        self.lab, self.programs = lab, programs

    def application(self, name, ms, kernel):
        return self.programs.application(name, ms, kernel)

    def alone(self, wanted):
        """Makes applications of (paper's name, milliseconds, kernel) and measures them alone."""
        applications = [self.application(*one) for one in wanted]
        with self.lab.gpuctld():
            self.lab.gpuctl("create-slice", "set")
            self.programs.measure_alone([(a, one[1]) for a, one in zip(applications, wanted)])
        return applications

    def heading(self, applications, wanted):
        for a, (_, ms, _) in zip(applications, wanted):
            yield f"{self.name}: {a.words()}", f"{ms} ms", f"{a.plain_ms:.3f} ms alone, {a.managed_ms:.3f} in a slice"


class Pairs(Experiment):
    """Long kernels of one role meet short ones of another."""

    repetitions = 3
    delay_ms, off_ms, stretch = flep.DELAY_MS, flep.OFF_MS, 1.15
    roles = "low", "high"

    def speed_up(self, found, side, what="speed-up"):
        speed, pairs = over(found, "MPS", side, "short")
        if side != "MPS" and speed:
            yield f"{self.name}, {side}: {what} over MPS", self.paper, f"{bootstrap.words(speed)}; {ranged(pairs)}"

    def prepare(self):
        longs, shorts = self.wanted()
        applications = self.alone(longs + shorts)
        yield from self.heading(applications, longs + shorts)
        self.longs, self.shorts = applications[: len(longs)], applications[len(longs) :]

    def groups(self):
        """Those that are started together."""
        return [self.longs]

    def play(self, side):
        priorities = tuple(side.priorities.get(role, "none") for role in self.roles)
        found = {}
        for longs in self.groups():
            meeting = flep.Meeting(self.programs, longs, self.shorts, self.delay_ms, self.stretch, self.off_ms)
            for pair, at in meeting.summaries((self.roles, priorities), self.repetitions).items():
                found["_".join(pair)] = {key: at[key] for key in ("short", "both", "antt", "stp")}
        return {side.name: found}


def over(found, side, other, key):
    """By start, the mean over the pairs of what `side` has over what `other` has in the same start; also by pair. Only
    pairs that all sides have count, where there are any, so that sides are compared by the same ones.
    """
    of_sides = [pairs for of in found.values() if (pairs := {pair for start in of.values() for pair in start})]
    of_all = set.intersection(*of_sides) if of_sides else set()
    starts, pairs = [], {}
    for number in sorted(set(found[side]) & set(found[other])):
        mine, theirs = found[side][number], found[other][number]
        both = set(mine) & set(theirs)
        ratios = {pair: mine[pair][key] / theirs[pair][key] for pair in sorted(both & of_all or both)}
        if ratios:
            starts.append(statistics.mean(ratios.values()))
        for pair, ratio in ratios.items():
            pairs.setdefault(pair, []).append(ratio)
    return starts, {pair: statistics.mean(of) for pair, of in pairs.items()}


def by_start(found, side, key):
    return [statistics.mean(at[key] for at in of.values()) for of in found[side].values() if of]


def ranged(ratios):
    """Of a dictionary by pair."""
    most, least = max(ratios, key=ratios.get), min(ratios, key=ratios.get)
    return f"{ratios[least]:.2f} ({least}) to {ratios[most]:.2f} ({most}), {len(ratios)} pairs"


class Flep8(Pairs):
    name, paper = "FLEP Figure 8", "10.1, 4.1 to 24.2"
    sides = (
        *stock(),
        isolated("low", "high"),
        Side("gpuctl, priority", slices=LOW_HIGH),
        Side("gpuctl, hpf", slices=LOW_HIGH, policy="hpf"),
    )

    def wanted(self):
        longs, shorts = self.lab.size((flep.LOW_PRIORITY, tuple(flep.TABLE_1)), (("PF",), ("MM", "VA")))
        return [(n, flep.TABLE_1[n][0], FLEP[n]) for n in longs], [(n, flep.TABLE_1[n][1], FLEP[n]) for n in shorts]

    def rows(self, found):
        for side in found:
            yield from self.speed_up(found, side)
            later, pairs = over(found, side, "MPS", "both")
            if side != "MPS" and later:
                yield (
                    f"{self.name}, {side}: until both are done, over MPS",
                    "",
                    f"{bootstrap.words(later, 3)}; {ranged(pairs)}",
                )


class Flep10(Pairs):
    name, paper = "FLEP Figure 10", "8.0, up to 27"
    roles = "set", "set"
    sides = (
        Side("MPS"),
        Side("time-slicing", TIME_SLICED),
        Side("gpuctl, hpf", slices=(("set", ()),), policy="hpf"),
    )

    def wanted(self):
        longs, shorts = self.lab.size((tuple(flep.TABLE_1), flep.SHORT), (("PF",), ("MM", "VA")))
        return [(n, flep.TABLE_1[n][0], FLEP[n]) for n in longs], [(n, flep.TABLE_1[n][1], FLEP[n]) for n in shorts]

    def rows(self, found):
        for side in found:
            if side == "MPS":
                continue
            for what, paper, ratios in (
                ("ANTT, better than MPS", self.paper, over(found, "MPS", side, "antt")),
                ("STP over MPS (Figure 11)", "0.946", over(found, side, "MPS", "stp")),
                ("until both are done, over MPS", "<= 1.054", over(found, side, "MPS", "both")),
            ):
                if ratios[0]:
                    yield f"{self.name}, {side}: {what}", paper, f"{bootstrap.words(ratios[0], 3)}; {ranged(ratios[1])}"


class Ffs(Flep8):
    """Figure 8's pairs, each program launching without an end: the GPU time that each has, in what it takes alone."""

    name = "FLEP Figure 13"
    of_start = 7  # pairs; four starts have all of them
    settle_ms, window_ms = 1000, 1500
    sides = (
        Side("MPS"),
        Side("time-slicing", TIME_SLICED),
        Side("gpuctl, ffs", slices=(("low", ("--weight", 100)), ("high", ("--weight", 200))), policy="ffs"),
    )

    def pairs(self):
        return [(long, short) for long in self.longs for short in self.shorts if long.name != short.name]

    def play(self, side):
        pairs = self.pairs()
        every = -(-len(pairs) // self.of_start)
        return {side.name: {f"{a.name}_{b.name}": self.together(a, b) for a, b in pairs[self.number % every :: every]}}

    def together(self, long, short):
        settle_ms, end_ms = self.lab.size((self.settle_ms, self.settle_ms + self.window_ms), (20, 80))
        seconds = self.programs.ms(1.2 * end_ms) / 1000
        options = ("--depth", 2, "--seconds", seconds)
        programs = self.programs.start([("low", long, options), ("high", short, options)])
        times = self.programs.finish(programs, self.programs.begin(programs, [0, 0]))
        low, high = (
            (done_by(launches, end_ms) - done_by(launches, settle_ms)) * one.plain_ms
            for one, launches in zip((long, short), times)
        )
        return {"share": high / (low + high), "rate": (low + high) / (end_ms - settle_ms)}

    def rows(self, found):
        for side, starts in found.items():
            pairs = {pair: at for start in starts.values() for pair, at in start.items()}
            if not pairs:
                continue
            for what, paper, key in (
                ("share of the heavier, 2:1", "2/3", "share"),
                ("throughput (Figure 14), of the same alone", ">= 0.9", "rate"),
            ):
                of = {pair: at[key] for pair, at in pairs.items()}
                mean = bootstrap.words([statistics.mean(at[key] for at in start.values()) for start in starts.values()])
                yield f"{self.name}, {side}: {what}", paper, f"{mean}; {ranged(of)}"


def done_by(launches, at_ms):
    """How many of a series of launches are complete at a time, with the completed part of the current one. Each launch
    starts when the one before it is complete.
    """
    before, count = launches[0][0], 0
    for _, completed in launches:
        if completed > at_ms:
            return count + max(at_ms - before, 0) / (completed - before)
        before, count = completed, count + 1
    return count


class SmGuard(Pairs):
    """With the shorter half of the batch kernels: twelve of the 24 pairs."""

    name, paper = "SMGuard Figure 12", "9.8, 1.9 to 55.2"
    roles = "batch", "ls"
    repetitions = 1
    delay_ms, off_ms = smguard.DELAY_MS, smguard.OFF_MS
    stretch = 1.15 * smguard.CAPSM / (smguard.CAPSM - smguard.RESERVE)

    def __init__(self, lab, programs):
        super().__init__(lab, programs)
        reserve = (
            ("batch", ()),
            ("ls", ("--reserve", OfSms(smguard.RESERVE / smguard.CAPSM), "--reserve-mode", "strict")),
        )
        left = 100 * (smguard.CAPSM - smguard.RESERVE) / smguard.CAPSM
        self.sides = (
            *stock(self.roles),
            Side(f"MPS, {left:.0f} % for batch", env={"batch": {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{left:.1f}"}}),
            isolated(*self.roles),
            Side("gpuctl, priority", slices=(("batch", ()), ("ls", ("--priority", 50)))),
            Side(f"gpuctl, reserve of {smguard.RESERVE}/{smguard.CAPSM}", slices=reserve),
        )

    def wanted(self):
        batch, ls = self.lab.size((smguard.OTHER_RESERVES_BESIDE, tuple(smguard.LS)), (("bs",), ("nn", "va")))
        return [(n, smguard.BATCH[n], SMGUARD[n]) for n in batch], [(n, smguard.LS[n], SMGUARD[n]) for n in ls]

    def groups(self):
        return [[one] for one in self.longs]

    def rows(self, found):
        for side in found:
            yield from self.speed_up(found, side, "LS's speed-up")
            for what, paper, key in (("Figure 13, ANTT", "1.56", "antt"), ("Figure 14, STP", "1.57", "stp")):
                if found[side]:
                    yield f"SMGuard {what}, {side}", paper, bootstrap.words(by_start(found, side, key))


class FrsOrders(Experiment):
    """Each start is another order of the applications."""

    name, figure, by_program = "FRS", "FRS Figure 4", "FRS Figure 3"
    repetitions = 4
    policies = frs.POLICIES
    paper = dict(zip(frs.POLICIES, zip((1.95, 1.96, 4.87, 6.0, 2.44), (0.70, 0.63, 1.41, 2.99, 0.42))))
    sides = (
        Side("MPS"),
        Side("time-slicing", TIME_SLICED),
        Side("gpuctl", slices=(("set", ()),), policy="srt"),
    )

    def those(self):
        """Name, milliseconds and kernel of each application."""
        durations = self.lab.size(FRS, {name: FRS[name] for name in ("PF", "MM", "RED")})
        return [(name, ms, FRS_KERNELS[name]) for name, ms in durations.items()]

    def prepare(self):
        self.wanted = self.those()
        self.applications = self.alone(self.wanted)
        yield from self.heading(self.applications, self.wanted)

    def order(self, number):
        return frs.random.Random(1 + number).sample(self.applications, len(self.applications))

    def play(self, side):
        order = self.order(self.number)
        members = [("set", one, ()) for one in order]
        starts = [position * GAP_MS for position in range(len(order))]
        period_ms = 1.5 * sum(one.plain_ms for one in order) + 10
        repetitions = self.lab.size(self.repetitions, 1)
        if not side.ours:
            launches = {side.name: self.programs.run(members, starts, period_ms, repetitions)}
        else:
            variants = {
                f"gpuctl, {policy}": lambda policy=policy: self.lab.call(
                    "SetSlice", path="/", settings={"policy": policy}
                )
                for policy in self.policies
            }
            launches = self.programs.live(members, starts, period_ms, repetitions, variants)
            launches |= self.limits(order)
        return {
            name: {one.name: statistics.mean(b - a for a, b in of) / one.plain_ms for one, of in zip(order, found)}
            for name, found in launches.items()
        }

    def limits(self, order):
        """What each policy comes to in this order where handing over costs nothing and durations are known."""
        members = [(one.name, one.managed_ms, 0, at * GAP_MS, 0) for at, one in enumerate(order)]
        for policy, times in self.programs.simulate(
            self.name.lower(), members, self.policies, dispatch_ms=0, preempt_ms=0
        ):
            yield f"limit of {policy} (simulated)", [[(0, times[one.name])] for one in order]

    def rows(self, found):
        for side, orders in found.items():
            if not orders:
                continue
            figures = frs.figures([orders[number] for number in sorted(orders)])
            antt, dntt = self.paper.get(side.split(", ")[-1], ("", "")) if side.startswith("gpuctl") else ("", "")
            yield f"{self.figure}, {side}: ANTT", str(antt), bootstrap.words(figures["antt"])
            yield (
                f"{self.figure}, {side}: DNTT of means; by order",
                str(dntt),
                (f"{figures['dntt_of_means']:.2f}; {bootstrap.words(figures['dntt'])}"),
            )
            yield (
                f"{self.figure}, {side}: STP of means; by order",
                "",
                (f"{figures['stp_of_means']:.2f}; {bootstrap.words(figures['stp'])}"),
            )
            yield f"{self.by_program}, {side}: NTT", "", ", ".join(f"{n} {v:.2f}" for n, v in figures["means"].items())


class TorchOrders(FrsOrders):
    """The same with PyTorch's operations, of many launches in original form each."""

    name = figure = by_program = "PyTorch"
    policies = ("fcfs", *frs.POLICIES, "dprr")
    paper = {}

    def those(self):
        if self.lab.software:
            raise NotHere("needs a GPU and PyTorch")
        return torch_applications.WANTED

    def application(self, name, ms, kernel):
        return torch_applications.made(self.lab, name, ms, kernel)


class EffiSha(Experiment):
    """Each kernel has a slice of its own, whose priority changes between two assignments."""

    name = "EffiSha"
    repetitions = 3
    policies = "piv", "dprr"

    def __init__(self, lab, programs):
        super().__init__(lab, programs)
        read = {n: tomllib.loads((WORKLOADS / f"effisha-{n}.toml").read_text(encoding="utf-8")) for n in ASSIGNMENTS}
        self.gap_ms = read["group"]["arrivals"]["gap_ms"]
        rehearsed = ("Scan", "Triad", "FFT")
        self.kernels = {
            n: [one for one in workload["application"] if lab.size(True, one["name"] in rehearsed)]
            for n, workload in read.items()
        }
        names = [one["name"] for one in self.kernels["group"]]
        median = statistics.median(one["priority"] for one in self.kernels["group"])
        upper = [one["name"] for one in self.kernels["group"] if one["priority"] > median]
        self.sides = (
            Side("MPS"),
            Side(
                "MPS, stream priorities of two levels, group",
                priorities={n: "high" if n in upper else "low" for n in names},
            ),
            Side("time-slicing", TIME_SLICED),
            Side("gpuctl", slices=tuple((n, ()) for n in names), policy="piv"),
        )

    def prepare(self):
        self.wanted = [(one["name"], one["alone_ms"], EFFISHA[one["name"]]) for one in self.kernels["group"]]
        self.applications = self.alone(self.wanted)
        yield from self.heading(self.applications, self.wanted)

    def assign(self, policy, assignment):
        self.lab.call("SetSlice", path="/", settings={"policy": policy})
        for one in self.kernels[assignment]:
            self.lab.call("SetSlice", path=one["name"], settings={"priority": one["priority"]})

    def play(self, side):
        members = [(a.name, a, ("--priority", side.priorities.get(a.name, "none"))) for a in self.applications]
        starts = [position * self.gap_ms for position in range(len(members))]
        period_ms = 1.5 * sum(a.plain_ms for a in self.applications) + 10
        repetitions = self.lab.size(self.repetitions, 1)
        if not side.ours:
            launches = {side.name: self.programs.run(members, starts, period_ms, repetitions)}
        else:
            variants = {
                f"gpuctl, {policy}, {assignment}": lambda policy=policy, assignment=assignment: self.assign(
                    policy, assignment
                )
                for policy in self.policies
                for assignment in ASSIGNMENTS
            }
            launches = self.programs.live(members, starts, period_ms, repetitions, variants)
        return {
            name: {
                "ntt": {
                    a.name: statistics.mean(e - b for b, e in of) / a.plain_ms
                    for a, of in zip(self.applications, found)
                },
                "until": statistics.mean(max(e for _, e in rep) - rep[0][0] for rep in zip(*found)),
            }
            for name, found in launches.items()
        }

    def rows(self, found):
        for side, starts in found.items():
            if not starts:
                continue
            of = list(starts.values())
            yield (
                f"EffiSha Figure 14, {side}: mean NTT",
                "",
                bootstrap.words([statistics.mean(s["ntt"].values()) for s in of]),
            )
            yield (
                f"EffiSha Figure 15, {side}: STP",
                "",
                bootstrap.words([sum(1 / n for n in s["ntt"].values()) for s in of]),
            )
            yield (
                f"EffiSha Figure 14, {side}: NTT",
                "",
                ", ".join(f"{name} {statistics.mean(s['ntt'][name] for s in of):.2f}" for name in of[0]["ntt"]),
            )
            both = sorted(set(starts) & set(found["MPS"]))
            if side != "MPS" and both:
                longer = [starts[n]["until"] / found["MPS"][n]["until"] for n in both]
                yield f"EffiSha Figure 12, {side}: until all are done, over MPS", "<= 1.05", bootstrap.words(longer, 3)


EXPERIMENTS = {
    "flep8": Flep8,
    "flep10": Flep10,
    "ffs": Ffs,
    "frs": FrsOrders,
    "effisha": EffiSha,
    "smguard": SmGuard,
    "torch": TorchOrders,
}
MODES = (MPS, MANAGED, TIME_SLICED)
