"""SMGuard's Figure 16: how much longer a kernel takes that loses SMs while it runs.

With remapping, workers that stay claim what others left: here a quarter of the SMs is taken, and either kept from the
kernel to its end or given back as soon as the workers have left. Without it, what an evicted kernel has not done is
launched again: here all SMs are taken, so that no worker remains, and given back as soon as all have left. Then the
runtime launches workers anew.

The kernels have the durations of Table 3, but at least 4 ms, which are long enough to be met in the middle. The
latency of a launch is from its issue to its end, over that of launches that lose nothing, in the same run by turns;
and from the change to the end, over what was left then.
"""

import statistics
import time

from ..lab.lab import ALWAYS_REWRITTEN
from .schedulers import Schedulers
from .smguard import BATCH, LS, application

LEAST_MS = 4
KERNELS = {name: max(milliseconds, LEAST_MS) for name, milliseconds in {**LS, **BATCH}.items()}
REHEARSED = ("va", "bs")
UNTOUCHED, KEPT, BACK, ALL = (
    "untouched",
    "a quarter of the SMs taken",
    "a quarter, given back at once",
    "all, given back",
)
SIDES = (UNTOUCHED, KEPT, BACK, ALL)
CHANGE_AT = 0.3  # of the duration
LATEST = 0.7  # later changes are not counted
REPETITIONS = 8
PATIENCE_MS = 50
BEGIN_NOTHING_AFTER_S = 360


def latencies(times, alone):
    """Of one side: the median latency over that alone, the same from the change on, and of how many launches. None:
    there is none. `times`: (issued, changed, completed) of its launches, `alone`: the latency of launches that lose
    nothing; in one unit.
    """
    kept = [one for one in times if one[0] < one[1] < min(one[0] + LATEST * alone, one[2])]
    if not kept:
        return None
    whole = statistics.median((completed - issued) / alone for issued, _, completed in kept)
    rest = statistics.median(
        (completed - changed) / (alone - (changed - issued)) for issued, changed, completed in kept
    )
    return whole, rest, len(kept)


def rows(found):
    """`found`: latencies() by side, by kernel."""
    for name, sides in found.items():
        said = (f"{side}: {of[0]:.2f}, {of[1]:.2f} (n={of[2]})" for side, of in sides.items() if of)
        yield (f"{name}: latency over untouched, and from the change on", "", "; ".join(said))
    for side, target in ((KEPT, "1.2"), (BACK, "<= 1.2"), (ALL, "1.8")):
        known = {name: sides[side] for name, sides in found.items() if sides.get(side)}
        if known:
            worst = max(known, key=lambda name: known[name][0])
            yield (
                f"Figure 16, {side}: latency over untouched, mean of {len(known)} kernels; worst; from the change on",
                target,
                f"{statistics.mean(of[0] for of in known.values()):.2f}; {known[worst][0]:.2f} ({worst}); "
                f"{statistics.mean(of[1] for of in known.values()):.2f}",
            )


def change(lab, side):
    """Takes the SMs, and gives them back if the side says so. Returns when they were taken, in ns of
    CLOCK_MONOTONIC.
    """
    sms = lab.sms()
    left = 0 if side == ALL else sms - max(1, sms // 4)
    lab.call("SetSlice", path="set", settings={"max": left})
    taken = time.monotonic_ns()
    if side != KEPT:
        until = time.monotonic() + lab.size(PATIENCE_MS, 100 * PATIENCE_MS) / 1000
        while (lab.usage("set") or {"holding": 0})["holding"] > left and time.monotonic() < until:
            pass
        lab.call("SetSlice", path="set", settings={"max_unlimited": True})
    return taken


def measure(schedulers, one):
    """latencies() by side, of one kernel."""
    lab = schedulers.lab
    count = len(SIDES) * lab.size(REPETITIONS, 2)
    period_ms = 2.2 * one.plain_ms + 20
    programs = schedulers.start([("set", one, ())], (schedulers.ms(period_ms) * 1000, count + 1))
    begin = schedulers.begin(programs, [0])

    def sleep_until(at_ms):
        time.sleep(max(0, (begin - time.monotonic_ns()) / 1e9 + schedulers.ms(at_ms) / 1000))

    changed = []
    for number in range(count):
        side = SIDES[number % len(SIDES)]
        if side == UNTOUCHED:
            changed.append(None)
            continue
        issued_ms = number * period_ms
        sleep_until(issued_ms + CHANGE_AT * one.plain_ms)
        changed.append((change(lab, side) - begin) / 1e6 / schedulers.scale)
        sleep_until(issued_ms + period_ms - 5)
        lab.call("SetSlice", path="set", settings={"max_unlimited": True})
    launches = schedulers.finish(programs, begin)[0][:count]
    lab.record(remapping=one.name, launches_ms=launches, changed_ms=changed)
    of_side = {side: list(zip(launches, changed))[at :: len(SIDES)] for at, side in enumerate(SIDES)}
    alone = statistics.median(completed - issued for (issued, completed), _ in of_side[UNTOUCHED])
    return {
        side: latencies([(issued, at, completed) for (issued, completed), at in of_side[side]], alone)
        for side in SIDES[1:]
    }


def step_remapping(lab):
    """SMGuard's Figure 16: how much longer a kernel takes that loses SMs, or all of them, while it runs."""
    began = time.monotonic()
    with lab.gpuctld(config=ALWAYS_REWRITTEN), lab.company():
        lab.gpuctl("create-slice", "set")
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        of = lab.size(KERNELS, {name: KERNELS[name] for name in REHEARSED})
        kernels = [application(schedulers, name, of[name]) for name in of]
        schedulers.measure_alone([(one, of[one.name]) for one in kernels])
        lab.gpuctl("set", "/", "policy=share")
        found = {}
        for one in kernels:
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"{one.name}: NOT MEASURED", "", "no time left")
                continue
            found[one.name] = measure(schedulers, one)
        yield from rows(found)
        yield ("wrong results", "0", str(schedulers.wrong))
