"""EffiSha's eleven kernels (Table 3, 3 ms apart) under piv, for each of its three assignments of priorities: measured
against the simulator. The workloads are those of tests/workloads, the kernels the suite's, with the paper's durations.
"""

import pathlib
import statistics
import tomllib

from .kernels import EFFISHA

WORKLOADS = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/workloads"
ASSIGNMENTS = ("group", "random", "sjf")
POLICY = "piv"


def slice_of(priority):
    return f"priority-{priority}"


def sets(schedulers, dispatch_ms, preempt_ms):
    """Runs the sets. The costs are those that switches() returns."""
    lab = schedulers.lab
    assignments = ASSIGNMENTS[: lab.size(3, 1)]
    workloads = [
        tomllib.loads((WORKLOADS / f"effisha-{name}.toml").read_text(encoding="utf-8")) for name in assignments
    ]
    of_each = [workload["application"][: lab.size(11, 3)] for workload in workloads]
    applications = [
        schedulers.application(member["name"], member["alone_ms"], EFFISHA[member["name"]]) for member in of_each[0]
    ]
    schedulers.measure_alone(
        [(application, member["alone_ms"]) for application, member in zip(applications, of_each[0])]
    )
    managed_ms = [application.managed_ms for application in applications]
    for priority in {member["priority"] for members in of_each for member in members}:
        lab.gpuctl("create-slice", slice_of(priority), "--priority", priority)
    for assignment, workload, members in zip(assignments, workloads, of_each):
        starts = [position * workload["arrivals"]["gap_ms"] for position in range(len(members))]
        lab.gpuctl("set", "/", f"policy={POLICY}")
        launches = schedulers.run(
            [(slice_of(member["priority"]), application, ()) for application, member in zip(applications, members)],
            starts,
            1.5 * sum(member["alone_ms"] for member in members) + 10,
            lab.size(6, 1),
        )
        expected = [
            (application.name, max(application.managed_ms - dispatch_ms, 0.001), 0, start, member["priority"])
            for application, member, start in zip(applications, members, starts)
        ]
        [(_, turnarounds)] = schedulers.simulate(f"effisha-{assignment}", expected, (POLICY,), dispatch_ms, preempt_ms)
        there = schedulers.metrics(managed_ms, [[(0, turnarounds[application.name])] for application in applications])
        for metric, ours, simulated in zip(("ANTT", "STP", "DNTT"), schedulers.metrics(managed_ms, launches), there):
            yield (
                f"EffiSha's set, {assignment} priorities, {POLICY}: {metric} measured, simulated; difference",
                "<= 10 %",
                f"{ours:.2f}, {simulated:.2f}; {100 * (ours / simulated - 1):+.1f} %",
            )
        slowdowns = {
            member["name"]: statistics.mean((end - begin) / alone for begin, end in of_one)
            for member, of_one, alone in zip(members, launches, managed_ms)
        }
        yield (
            f"EffiSha's set, {assignment} priorities: NTT",
            "",
            ", ".join(f"{name} {slowdown:.2f}" for name, slowdown in slowdowns.items()),
        )
