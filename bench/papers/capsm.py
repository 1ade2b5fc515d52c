"""SMGuard's Figure 10: LS beside batch, with a reserve that is a part of each SM (CapSM) and one of whole SMs.

The pairs, durations and reserves are those of smguard.py. Neither reserve is kept by MPS.
"""

import statistics
import time

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

WHOLE, CAPACITY = "whole SMs", "a part of each SM"
PLACEMENTS = {
    WHOLE: '[daemon]\nplacement = "sms"\nlimits_by_mps = false\n',
    CAPACITY: '[daemon]\nplacement = "capacity"\n',
}
RESERVES = RESERVE, *OTHER_RESERVES  # the first beside all of the batch kernels
PAPER = "1.049, up to 1.2"


def ratios(found):
    """LS's median by capacity over that with whole SMs, by reserve and pair; of what both placements have."""
    return {
        key: statistics.median(turnarounds(at)) / statistics.median(turnarounds(found[WHOLE][key]))
        for key, at in found[CAPACITY].items()
        if key in found[WHOLE]
    }


def rows(found, alone_ms):
    """`found`: summary() by (reserve, (batch, LS)), by placement."""
    over = ratios(found)
    for reserve in RESERVES:
        of_reserve = {pair: ratio for (size, pair), ratio in sorted(over.items()) if size == reserve}
        if not of_reserve:
            yield (f"Figure 10, reserve of {reserve}/{CAPSM}: NOT MEASURED", "", "no time left")
            continue
        yield (
            f"Figure 10, reserve of {reserve}/{CAPSM}: LS by capacity over LS with whole SMs; over alone",
            "",
            ", ".join(
                f"{named(pair)} {ratio:.2f}; "
                + " and ".join(over_alone(of[reserve, pair], pair, alone_ms) for of in found.values())
                for pair, ratio in of_reserve.items()
            ),
        )
        worst = max(of_reserve, key=of_reserve.get)
        yield (
            f"Figure 10, reserve of {reserve}/{CAPSM}: mean of {len(of_reserve)} pairs; most",
            PAPER,
            f"{statistics.mean(of_reserve.values()):.3f}; {of_reserve[worst]:.2f} ({named(worst)})",
        )


def step_smguard_10(lab):
    """SMGuard's LS kernels beside batch, with a reserve of a part of each SM and with one of whole SMs."""
    began = time.monotonic()
    found = {placement: {} for placement in PLACEMENTS}
    schedulers = None
    for number, (placement, config) in enumerate(PLACEMENTS.items(), 1):
        with lab.gpuctld(config=config):
            create_slices(lab)
            if schedulers is None:
                schedulers, shorts, batch = measured_alone(lab)
            for reserve in RESERVES:
                if time.monotonic() - began > BEGIN_NOTHING_AFTER_S * number / len(PLACEMENTS):
                    break
                beside = [one for one in batch if reserve == RESERVE or one.name in OTHER_RESERVES_BESIDE]
                side = (("batch", "ls"), ("none", "none"), reserve)
                for pair, at in meet(lab, schedulers, side, beside, shorts).items():
                    found[placement][reserve, pair] = at
    yield from rows(found, {one.name: one.plain_ms for one in shorts})
    yield ("wrong results", "0", str(schedulers.wrong))
