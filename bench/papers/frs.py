"""FRS's nine applications (Table I, 1 ms apart) under each policy of its Figures 3 and 4 and under MPS with nothing
set, in many orders. Each application is the suite's kernel, as long as the paper says. The same orders are simulated
as if handing the GPU over cost nothing, which is the most that each policy can reach in them.

All sides take turns in each order. Turnarounds are over those alone: without the daemon for MPS, in a slice for the
others.
"""

import random
import statistics
import time

from .kernels import FRS as FRS_KERNELS
from .schedulers import FRS, GAP_MS, Schedulers

POLICIES = ("sjf", "srt", "rr", "cfs", "frs")
MPS = "MPS"
ORDERS, REPETITIONS = 20, 4
BEGIN_NO_ORDER_AFTER_S = 420  # the step may take little more
# The paper's, for frs.
ANTT, DNTT, STP = "<= 2.44", "<= 0.42", ">= 3.79"


def figures(orders):
    """Of one side. `orders`: for each order, the NTT of each application by name. The means of each application over
    the orders are what the paper plots; ANTT is the same either way.
    """
    means = {name: statistics.mean(order[name] for order in orders) for name in orders[0]}
    return {
        "antt": [statistics.mean(order.values()) for order in orders],
        "dntt": [statistics.pstdev(order.values()) for order in orders],
        "stp": [sum(1 / ntt for ntt in order.values()) for order in orders],
        "means": means,
        "dntt_of_means": statistics.pstdev(means.values()),
        "stp_of_means": sum(1 / ntt for ntt in means.values()),
    }


def with_range(values):
    return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def rows(side, found):
    """The rows of a side of the table. Only frs has the paper's figures as targets."""
    antt, dntt, stp = (ANTT, DNTT, STP) if side == "frs" else ("", "", "")
    yield f"FRS, {side}: ANTT, mean and range of {len(found['antt'])} orders", antt, with_range(found["antt"])
    yield f"FRS, {side}: DNTT in each order", "", with_range(found["dntt"])
    yield f"FRS, {side}: DNTT of the applications' means", dntt, f"{found['dntt_of_means']:.2f}"
    yield f"FRS, {side}: STP in each order", "", with_range(found["stp"])
    yield f"FRS, {side}: STP of the applications' means", stp, f"{found['stp_of_means']:.2f}"
    yield f"FRS, {side}: NTT", "", ", ".join(f"{name} {ntt:.2f}" for name, ntt in found["means"].items())


def limit_row(side, orders):
    """What the same orders come to if handing over costs nothing."""
    found = figures(orders)
    return (
        f"FRS, {side}: ANTT, DNTT of the applications' means, if handing over cost nothing (simulated)",
        "",
        f"{with_range(found['antt'])}; {found['dntt_of_means']:.2f}",
    )


def at_no_cost(schedulers, applications):
    """NTT by name, by policy, in one order, simulated."""
    alone_ms = {application.name: application.managed_ms for application in applications}
    members = [(name, ms, 0, position * GAP_MS, 0) for position, (name, ms) in enumerate(alone_ms.items())]
    for policy, turnarounds in schedulers.simulate("frs", members, POLICIES, dispatch_ms=0, preempt_ms=0):
        yield policy, {name: turnarounds[name] / ms for name, ms in alone_ms.items()}


def slowdowns(schedulers, side, applications):
    """NTT by name, in one order."""
    slice_path = None if side == MPS else "set"
    if slice_path:
        schedulers.lab.gpuctl("set", "/", f"policy={side}")
    launches = schedulers.run(
        [(slice_path, application, ()) for application in applications],
        [position * GAP_MS for position in range(len(applications))],
        1.5 * sum(application.plain_ms for application in applications) + 10,
        schedulers.lab.size(REPETITIONS, 1),
    )
    return {
        application.name: statistics.mean(end - begin for begin, end in of_one)
        / (application.managed_ms if slice_path else application.plain_ms)
        for application, of_one in zip(applications, launches)
    }


def step_frs(lab):
    """FRS's nine applications under its five policies and MPS, in 20 orders, and simulated at no cost."""
    began = time.monotonic()
    with lab.gpuctld():
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        durations = lab.size(FRS, {name: FRS[name] for name in ("PF", "HST256", "RED")})
        known = {name: schedulers.application(name, ms, FRS_KERNELS[name]) for name, ms in durations.items()}
        schedulers.measure_alone([(known[name], milliseconds) for name, milliseconds in durations.items()])
        rng = random.Random(1)
        sides = {side: [] for side in (MPS, *POLICIES)}
        limits = {policy: [] for policy in POLICIES}
        for number in range(lab.size(ORDERS, 1)):
            if number > 0 and time.monotonic() - began > BEGIN_NO_ORDER_AFTER_S:
                break
            order = [known[name] for name in rng.sample(sorted(known), len(known))]
            for side, orders in sides.items():
                orders.append(slowdowns(schedulers, side, order))
                lab.record(frs=side, order=[application.name for application in order], ntt=orders[-1])
            for policy, ntt in at_no_cost(schedulers, order):
                limits[policy].append(ntt)
        for side, orders in sides.items():
            yield from rows(side, figures(orders))
            if side in limits:
                yield limit_row(side, limits[side])
        yield ("wrong results", "0", str(schedulers.wrong))
