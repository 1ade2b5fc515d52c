"""SMGuard's Figure 10: LS beside batch, with a reserve that is a part of each SM (CapSM) and one of whole SMs.

The pairs, durations and reserves are those of smguard.py. Neither reserve is kept by MPS. A third side shows whether a
greater priority in hardware gives LS its part of each SM sooner.
"""

import statistics
import time

from ..lab.lab import BY_CAPACITY
from .smguard import (
    BEGIN_NOTHING_AFTER_S,
    CAPSM,
    OTHER_RESERVES,
    OTHER_RESERVES_BESIDE,
    RESERVE,
    create_slices,
    measured_alone,
    meet,
    named,
    over_alone,
    turnarounds,
)

RESERVES = RESERVE, *OTHER_RESERVES  # the first beside all of the batch kernels
WHOLE, CAPACITY, FIRST = "whole SMs", "a part of each SM", "a part of each SM and priority"
SIDES = {  # keys of the configuration, priority of LS, reserves
    WHOLE: ('lab.placement = "sms"\n', 0, RESERVES),
    CAPACITY: (BY_CAPACITY, 0, RESERVES),
    FIRST: (BY_CAPACITY, 50, (RESERVE,)),
}
PAPER = "1.049, up to 1.2"


def ratios(found, side):
    """LS's median over that with whole SMs, by reserve and pair; of what both sides have."""
    return {
        key: statistics.median(turnarounds(at)) / statistics.median(turnarounds(found[WHOLE][key]))
        for key, at in found[side].items()
        if key in found[WHOLE]
    }


def batch_over_alone(pairs, alone_ms):
    """The median over all repetitions in which a batch kernel met LS, by batch kernel, of the reserve RESERVE."""
    times = {}
    for (reserve, (batch, _)), at in pairs.items():
        if reserve == RESERVE:
            times.setdefault(batch, []).extend((end - begin) / alone_ms[batch] for (begin, end), _ in at["repetitions"])
    return ", ".join(f"{batch} {statistics.median(of):.2f}" for batch, of in sorted(times.items()))


def rows(found, alone_ms):
    """`found`: summary() by (reserve, (batch, LS)), by side."""
    for side, (_, _, reserves) in SIDES.items():
        if side != WHOLE:
            over = ratios(found, side)
            for reserve in reserves:
                of_reserve = {pair: ratio for (size, pair), ratio in sorted(over.items()) if size == reserve}
                yield from reserve_rows(found, side, reserve, of_reserve, alone_ms)
    for side, pairs in found.items():
        yield (f"reserve of {RESERVE}/{CAPSM}, {side}: batch over alone", "", batch_over_alone(pairs, alone_ms))


def reserve_rows(found, side, reserve, ratio_of, alone_ms):
    """The rows of one size of the reserve. `ratio_of`: by pair."""
    title = f"Figure 10, reserve of {reserve}/{CAPSM}, {side}"
    if not ratio_of:
        yield (f"{title}: NOT MEASURED", "", "no time left")
        return
    yield (
        f"{title}: LS over LS with whole SMs; over alone with whole SMs, and so",
        "",
        ", ".join(
            f"{named(pair)} {ratio:.2f}; "
            + " and ".join(over_alone(found[of][reserve, pair], pair, alone_ms) for of in (WHOLE, side))
            for pair, ratio in ratio_of.items()
        ),
    )
    worst = max(ratio_of, key=ratio_of.get)
    yield (
        f"{title}: mean of {len(ratio_of)} pairs; most",
        PAPER,
        f"{statistics.mean(ratio_of.values()):.3f}; {ratio_of[worst]:.2f} ({named(worst)})",
    )


def step_smguard_10(lab):
    """SMGuard's LS kernels beside batch, with a reserve of a part of each SM and with one of whole SMs."""
    began = time.monotonic()
    found = {side: {} for side in SIDES}
    schedulers = None
    for number, (side, (config, priority, reserves)) in enumerate(SIDES.items(), 1):
        with lab.gpuctld(config=config):
            create_slices(lab)
            if schedulers is None:
                schedulers, shorts, batch = measured_alone(lab)
            lab.gpuctl("set", "ls", f"priority={priority}")
            for reserve in reserves:
                if time.monotonic() - began > BEGIN_NOTHING_AFTER_S * number / len(SIDES):
                    break
                beside = [one for one in batch if reserve == RESERVE or one.name in OTHER_RESERVES_BESIDE]
                slices = (("batch", "ls"), ("none", "none"), reserve)
                for pair, at in meet(lab, schedulers, slices, beside, shorts).items():
                    found[side][reserve, pair] = at
    yield from rows(found, {one.name: one.plain_ms for one in shorts + batch})
    yield ("wrong results", "0", str(schedulers.wrong))
