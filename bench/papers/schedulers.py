"""Policies for jobs on the GPU: FLEP's pairs against plain MPS, FRS's set against the simulator.

Kernels have the durations of the papers' tables (FLEP Table 1, FRS Table I). All programs launch periodically, each at
a fixed offset in the period, so one run of a set of programs has many repetitions of the same arrivals.
"""

import itertools
import json
import random
import statistics
import subprocess
import time

from ..lab.samples import read_samples
from . import effisha, flep
from .kernels import BY_EXTENT, EXTENTS, MOST_EXTENT, UNCHECKED
from .kernels import FRS as FRS_KERNELS

TASK_US = 20
FRS = {
    "CEDD": 13.57,
    "SPMV": 8.36,
    "VA": 3.71,
    "CONV": 3.27,
    "BS": 2.36,
    "PF": 1.65,
    "MM": 1.43,
    "HST256": 1.29,
    "RED": 0.87,
}
FRS_POLICIES = ("srt", "frs", "rr")
GAP_MS = 1
SETTLES_MS = 4  # after a program that runs alone, until the next one does
LEAST_ALONE = 3  # times
MS = 1e6  # nanoseconds


class Application:
    """A kernel with its extent. The time of one launch alone, from its issue to its end, is plain_ms without the
    daemon. It is managed_ms in a slice under a policy for jobs, after another program had the GPU.
    """

    def __init__(self, name, kernel, extent, repeats=1):
        self.name, self.kernel, self.extent, self.repeats = name, kernel, extent, repeats
        self.plain_ms = self.managed_ms = 0.0

    def words(self):
        """What is launched, for a row."""
        repeats = f", each block {self.repeats} times" if self.repeats > 1 else ""
        return f"{self.name} is {self.kernel} {','.join(map(str, self.extent))}{repeats}"

    def arguments(self, check="last"):
        if self.kernel == "work":
            return ["work", "--blocks", self.extent[0], "--iterations", self.extent[1], "--check", check]
        repeats = ("--repeat", self.repeats) if self.repeats > 1 else ()
        check = "none" if self.kernel in UNCHECKED else check
        return [self.kernel, "--extent", ",".join(map(str, self.extent)), *repeats, "--check", check]

    def command(self, lab, samples, period, options, check):
        """Of a program that waits for begin() and writes its samples. `period`: microseconds, how many launches; none:
        the options say it.
        """
        arrival = ("--arrival", "periodic", "--period-us", period[0], "--count", period[1]) if period else ()
        words = ("--no-gpu-time", "--start-on-input", "--samples", samples, *arrival, *options, "--json")
        return [lab.bench_path, "run", *self.arguments(check), *words]


def durations_apart(launches, period_ms):
    """`launches`: of each program its (issued, completed) in each period, in the order in which they come. Returns of
    each program how long those took that met no other.
    """
    flat = [
        (number * period_ms + begin, number * period_ms + end)
        for number, period in enumerate(zip(*launches))
        for begin, end in period
    ]
    busy_until = [-float("inf"), *itertools.accumulate((end for _, end in flat), max)]
    next_begins = [*(begin for begin, _ in flat[1:]), float("inf")]
    found = [[] for _ in launches]
    for at, ((begin, end), busy, following) in enumerate(zip(flat, busy_until, next_begins)):
        if busy <= begin and end <= following:
            found[at % len(launches)].append(end - begin)
    return found


class Schedulers:
    def __init__(self, lab):
        self.lab = lab
        self.scale = lab.size(1, 100)  # a software GPU is slow: everything takes so many times as long
        self.runs = self.wrong = self.checked = 0
        self.sized = {}  # extent and repeats by kernel and milliseconds

    def ms(self, milliseconds):
        return milliseconds * self.scale

    def calibrate(self):
        """Finds the iterations of `work` for a block-task, and the block-tasks for a millisecond."""
        reached = self.lab.bench(
            None,
            "work",
            "--task-us",
            TASK_US * self.scale,
            "--calibrate-us",
            self.ms(5000),
            "--count",
            3,
            "--check",
            "last",
        )
        self.iterations = reached["extent"][1]
        self.blocks_per_ms = reached["extent"][0] / (reached["gpu_us"]["p50"] / 1000 / self.scale)

    def work(self, name, milliseconds, task_us=TASK_US):
        """`work` of that duration alone, with block-tasks so long."""
        longer = task_us / TASK_US
        blocks = max(1, round(milliseconds * self.blocks_per_ms / longer))
        return Application(name, "work", (blocks, round(self.iterations * longer)))

    def application(self, name, milliseconds, kernel):
        """A kernel of the suite that takes so long alone."""
        if (kernel, milliseconds) not in self.sized:
            self.sized[kernel, milliseconds] = self.size_of(milliseconds, kernel)
        return Application(name, kernel, *self.sized[kernel, milliseconds])

    def size_of(self, milliseconds, kernel):
        extent = self.lab.size(*EXTENTS[kernel])
        microseconds = self.ms(milliseconds) * 1000
        longer = () if kernel in BY_EXTENT else ("--calibrate-us", microseconds)
        arguments = (kernel, "--extent", ",".join(map(str, extent)), *longer)
        found = self.lab.bench(None, *arguments, "--count", 3, "--check", "none")
        if longer:
            return extent, found["repeats"]
        first = max(1, round(extent[0] * microseconds / found["gpu_us"]["p50"]))
        if first > MOST_EXTENT:
            raise RuntimeError(f"{kernel} of {milliseconds} ms needs an extent of {first}")
        return (first, *extent[1:]), 1

    def run(self, members, starts_ms, period_ms, count):
        """Members (slice, application, options) launch at these offsets of each of so many periods. Returns for each
        the list of (issued, completed), in ms of its period. One more period is not counted: programs that are done
        check a last result in it, with another launch.
        """
        programs = self.start(members, (self.ms(period_ms) * 1000, count + 1))
        times = self.finish(programs, self.begin(programs, starts_ms))
        if any(len(of_one) != count + 1 for of_one in times):
            raise RuntimeError(f"{[len(of_one) for of_one in times]} launches, not {count + 1} each")
        launches = [
            [
                (issued - number * period_ms, completed - number * period_ms)
                for number, (issued, completed) in enumerate(of_one[:count])
            ]
            for of_one in times
        ]
        self.lab.record(run=[application.name for _, application, _ in members], launches_ms=launches)
        return launches

    def start(self, members, period=None, check="last"):
        """Starts programs that wait for begin(), each with a file for its samples. `period`: as command() has it."""
        self.runs += 1
        programs = []
        for index, (where, application, options) in enumerate(members):
            samples = self.lab.scratch / f"schedulers-{self.runs}-{index}"
            command = application.command(self.lab, samples, period, options, check)
            programs.append((self.start_one(where, command), samples))
        for program, _ in programs:
            program.wait_ready()
        return programs

    def start_one(self, slice_path, command):
        return self.lab.start(slice_path, *command)

    def begin(self, programs, starts_ms):
        """Starts the programs. Returns the origin of their times, by CLOCK_MONOTONIC in ns."""
        begin = time.monotonic_ns() + 100_000_000
        for (program, _), start_ms in zip(programs, starts_ms):
            program.begin(begin + round(self.ms(start_ms) * MS))
        return begin

    def finish(self, programs, begin):
        """Returns for each program the list of (issued, completed), in ms."""
        times = []
        for program, samples in programs:
            report = program.report()
            self.wrong += report["mismatches"]
            self.checked += report["checked"]
            launches = read_samples(samples)
            instants = ("issue_ns", "complete_ns")
            times.append([tuple((launch[at] - begin) / MS / self.scale for at in instants) for launch in launches])
        return times

    def back_to_back(self, slices, application, count):
        """Runs a program in each of these slices that launches the application so often, two launches in flight.
        Returns the duration, in ms, and the number of evictions.
        """
        programs = self.start([(path, application, ("--depth", 2, "--count", count)) for path in slices], check="none")
        begin = self.begin(programs, [0] * len(programs))
        evictions = {}
        while any(program.process.poll() is None for program, _ in programs):
            for path in slices:
                evictions[path] = max(evictions.get(path, 0), (self.lab.usage(path) or {}).get("evictions", 0))
            time.sleep(0.01)
        times = self.finish(programs, begin)
        lasts = max(of_one[-1][1] for of_one in times) - min(of_one[0][0] for of_one in times)
        self.lab.record(back_to_back=application.name, slices=slices, count=count, ms=lasts, evictions=evictions)
        return lasts, sum(evictions.values())

    def measure_alone(self, applications):
        """Sets plain_ms and managed_ms. The applications run one after the other. Where one took so long that it met
        the next one, neither counts.
        """
        starts, at = [], 0.0
        for _, milliseconds in applications:
            starts.append(at)
            at += 1.5 * milliseconds + SETTLES_MS
        self.lab.gpuctl("set", "/", "policy=hpf")
        for slice_path in (None, "set"):
            members = [(slice_path, application, ()) for application, _ in applications]
            launches = self.run(members, starts, at, self.lab.size(10, 2))
            for (application, _), took in zip(applications, durations_apart(launches, at)):
                if len(took) < self.lab.size(LEAST_ALONE, 1):
                    raise RuntimeError(f"{application.name} met the others all but {len(took)} times")
                setattr(application, "managed_ms" if slice_path else "plain_ms", statistics.median(took))

    def simulate(self, name, members, policies, dispatch_ms, preempt_ms):
        """For each policy, the turnarounds in ms, by name, of these (name, ms alone, device, start in ms, priority)."""
        lab = self.lab
        path = lab.out / f"{name}.toml"
        devices = 1 + max(device for _, _, device, _, _ in members)
        lines = [
            f'title = "{name} as measured"',
            "[device]",
            f"capsm = {lab.sms()}",
            f"count = {devices}",
            f"preempt_us = {1000 * preempt_ms:.1f}",
            f"dispatch_us = {1000 * dispatch_ms:.1f}",
        ]
        for member, alone_ms, device, start_ms, priority in members:
            lines += [
                "[[application]]",
                f'name = "{member}"',
                f"alone_ms = {alone_ms:.6f}",
                f"task_us = {TASK_US}",
                f"device = {device}",
                f"start_ms = {start_ms}",
                f"priority = {priority}",
            ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [lab.gpuctl_path, "--json", "simulate", path, "--policy", ",".join(policies)]
        run = subprocess.run(command, env=lab.env, check=True, capture_output=True, text=True, timeout=30)
        for result in json.loads(run.stdout):
            turnarounds = {application["name"]: application["p50_ms"] for application in result["applications"]}
            lab.record(
                simulated=result["policy"], turnarounds_ms=turnarounds, evictions=result["evictions"], workload=name
            )
            yield result["policy"], turnarounds

    @staticmethod
    def metrics(alone_ms, launches):
        """The means over the repetitions of (ANTT, STP, DNTT)."""
        found = []
        for repetition in zip(*launches):
            slowdowns = [(end - begin) / alone for alone, (begin, end) in zip(alone_ms, repetition)]
            throughput = sum(1 / slowdown for slowdown in slowdowns)
            found.append((statistics.mean(slowdowns), throughput, statistics.pstdev(slowdowns)))
        return [statistics.mean(column) for column in zip(*found)]


def step_schedulers(lab):
    """Policies for jobs: FLEP's pairs against plain MPS, FRS's and EffiSha's sets against the simulator."""
    with lab.gpuctld():
        lab.gpuctl("create-slice", "high", "--priority", 10, "--weight", 200)
        lab.gpuctl("create-slice", "low", "--weight", 100)
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        costs = yield from switches(schedulers)
        yield from flep.pairs(schedulers, costs)
        yield from applications_of_frs(schedulers, *costs)
        yield from effisha.sets(schedulers, *costs)
        yield ("wrong results", "0", str(schedulers.wrong))


def switches(schedulers):
    """Measures the cost of passing the GPU from one program to another, as the time that two programs take in turns
    beyond their work. Returns in ms: a switch after another program's launch ended; the cost of an
    eviction without the switch that follows it and without its block-task.
    """
    lab = schedulers.lab
    short, long = schedulers.work("short", 2), schedulers.work("long", lab.size(40, 20))
    counts = {short: lab.size(100, 8), long: lab.size(6, 2)}
    alone = {}
    for application, count in counts.items():
        alone[application] = schedulers.back_to_back(["high"], application, count)[0] / count
    lab.gpuctl("set", "/", "policy=fcfs")
    took, _ = schedulers.back_to_back(["high", "low"], short, counts[short])
    switch_ms = took / (2 * counts[short]) - alone[short]
    yield ("from one program's end to the next one's start, and on the GPU", "", f"{1000 * switch_ms:.0f} us")
    lab.gpuctl("set", "/", "policy=rr:quantum_ms=" + str(schedulers.ms(2)))
    took, evictions = schedulers.back_to_back(["high", "low"], long, counts[long])
    lost_ms = took - 2 * counts[long] * (alone[long] + switch_ms)
    evict_ms = lost_ms / max(evictions, 1)
    yield ("an eviction, and coming back: what it costs, how many", "", f"{1000 * evict_ms:.0f} us, {evictions}")
    known = next(kernel for kernel in lab.call("ListKernels")["kernels"] if kernel["name"] == "work")
    yield (
        "the same as the daemon learnt it, how wrong its durations are",
        "",
        f"{known['evict_us'] / schedulers.scale:.0f} us, {100 * known['error']:.0f} %",
    )
    return max(switch_ms, 0), max(evict_ms - switch_ms - TASK_US / 2000, 0)


def applications_of_frs(schedulers, dispatch_ms, preempt_ms):
    lab = schedulers.lab
    durations = lab.size(FRS, {name: FRS[name] for name in ("PF", "HST256", "RED")})
    known = {name: schedulers.application(name, ms, FRS_KERNELS[name]) for name, ms in durations.items()}
    schedulers.measure_alone([(known[name], milliseconds) for name, milliseconds in durations.items()])
    yield (
        "FRS, alone: plain, in a slice",
        "",
        "; ".join(f"{name} {a.plain_ms:.3f}, {a.managed_ms:.3f} ms ({a.kernel})" for name, a in known.items()),
    )
    rng = random.Random(1)
    orders = [rng.sample(sorted(known), len(known)) for _ in range(lab.size(4, 1))]
    measured = {policy: [] for policy in FRS_POLICIES}
    simulated = {policy: [] for policy in FRS_POLICIES}
    for number, order in enumerate(orders):
        applications = [known[name] for name in order]
        managed_ms = [application.managed_ms for application in applications]
        for policy, turnarounds in simulate(schedulers, applications, dispatch_ms, preempt_ms, number):
            simulated[policy].append(schedulers.metrics(managed_ms, [[(0, turnaround)] for turnaround in turnarounds]))
        for policy in FRS_POLICIES:
            lab.gpuctl("set", "/", f"policy={policy}")
            launches = schedulers.run(
                [("set", application, ()) for application in applications],
                [position * GAP_MS for position in range(len(order))],
                1.5 * sum(durations.values()) + 10,
                lab.size(4, 2),
            )
            measured[policy].append(schedulers.metrics(managed_ms, launches))
    for policy in FRS_POLICIES:
        for metric, here, there in zip(("ANTT", "STP", "DNTT"), zip(*measured[policy]), zip(*simulated[policy])):
            ours, expected = statistics.mean(here), statistics.mean(there)
            yield (
                f"FRS's set, {policy}: {metric} measured, simulated; difference",
                "<= 10 %",
                f"{ours:.2f}, {expected:.2f}; " + (f"{100 * (ours / expected - 1):+.1f} %" if expected > 0.01 else "-"),
            )


def simulate(schedulers, applications, dispatch_ms, preempt_ms, number):
    """The turnarounds in ms of each policy, in the order of the applications."""
    members = [
        (application.name, max(application.managed_ms - dispatch_ms, 0.001), 0, position * GAP_MS, 0)
        for position, application in enumerate(applications)
    ]
    for policy, turnarounds in schedulers.simulate(f"frs-{number}", members, FRS_POLICIES, dispatch_ms, preempt_ms):
        yield policy, [turnarounds[application.name] for application in applications]
