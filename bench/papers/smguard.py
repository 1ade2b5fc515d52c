"""SMGuard's pairs (Figures 11 to 14): four latency-sensitive kernels (LS), each issued 1 ms after each of six kernels
of batch, under MPS with nothing set, under MPS with stream priorities, in a slice with a greater priority, and with a
strict reserve of 8 of 13 of the SMs; then with other reserves.

The kernels have the durations of Table 3, but mc a tenth of it, so that the step ends. Turnarounds are over those
alone and unmanaged.
"""

import statistics
import time

from .flep import Meeting
from .kernels import SMGUARD
from .schedulers import Schedulers

# Durations in ms of the suite's kernels (kernels.py).
LS = {"nn": 0.65, "pf": 3.7, "va": 3.15, "bfs": 2.01}
BATCH = {"pl": 312.51, "mc": 2123.46 / 10, "md": 143.61, "mm": 236.91, "bs": 13.33, "md5": 39.13}
OTHER_RESERVES_BESIDE = ("md", "bs", "md5")  # the shorter ones
REHEARSED = ("nn", "va"), ("bs", "md5")
DELAY_MS = 1
OFF_MS = 0.6, 0.6  # 5 % of what is left of the shortest batch kernel
CAPSM = 13
RESERVE, OTHER_RESERVES = 8, (4, 6, 10)
REPETITIONS = 3
MPS, STREAM_PRIORITIES, PRIORITY = "MPS", "MPS, stream priorities", "priority"
SIDES = {  # slices and stream priorities of batch and of LS, then the reserve in thirteenths
    MPS: ((None, None), ("none", "none"), 0),
    STREAM_PRIORITIES: ((None, None), ("low", "high"), 0),
    PRIORITY: (("batch", "high"), ("none", "none"), 0),
    f"reserve of {RESERVE}/{CAPSM}": (("batch", "ls"), ("none", "none"), RESERVE),
}
BEGIN_NOTHING_AFTER_S = 420


def means(pairs):
    """Of one side. `pairs`: summary() by (batch, LS)."""
    return {figure: statistics.mean(at[figure] for at in pairs.values()) for figure in ("antt", "stp")}


def speed_ups(pairs, over):
    """How much sooner LS is done than on another side, by pair; of the pairs that both have."""
    return {pair: over[pair]["short"] / at["short"] for pair, at in pairs.items() if pair in over}


def turnarounds(at):
    """LS's turnarounds in each repetition of a pair, in ms."""
    return [end - begin for _, (begin, end) in at["repetitions"]]


def later(pairs, over):
    """The pairs in which LS's median is later than on another side, and those of them whose ranges are apart."""
    slower = [pair for pair, up in speed_ups(pairs, over).items() if up < 1]
    apart = [pair for pair in slower if min(turnarounds(pairs[pair])) > max(turnarounds(over[pair]))]
    return slower, apart


def with_range(at):
    """LS's turnaround, with the range of the repetitions."""
    times = turnarounds(at)
    return f"{at['short']:.2f} ms ({min(times):.2f} to {max(times):.2f})"


def named(pair):
    return f"{pair[1]}+{pair[0]}"


def rows(found):
    """Figures 12 to 14. `found`: summary() by (batch, LS), by side; MPS among them."""
    everywhere = set.intersection(*(set(pairs) for pairs in found.values()))
    common = {side: {pair: at for pair, at in pairs.items() if pair in everywhere} for side, pairs in found.items()}
    for pair in sorted(everywhere):
        said = (f"{side}: {with_range(of[pair])}, {of[pair]['stp']:.2f}" for side, of in common.items())
        yield (f"{named(pair)}: LS's turnaround, STP", "", "; ".join(said))
    for side, pairs in common.items():
        if not pairs:
            continue
        ours = side not in (MPS, STREAM_PRIORITIES)
        at = means(pairs)
        if side != MPS:
            ups = speed_ups(pairs, common[MPS])
            best, least = max(ups, key=ups.get), min(ups, key=ups.get)
            yield (
                f"Figure 12, {side}: LS's speed-up over MPS, mean of {len(ups)} pairs; most; least",
                ">= 9.8" if ours else "",
                f"{statistics.mean(ups.values()):.1f}; {ups[best]:.1f} ({named(best)}); "
                f"{ups[least]:.1f} ({named(least)})",
            )
        yield (f"Figure 13, {side}: ANTT, mean", "<= 1.56" if ours else "", f"{at['antt']:.2f}")
        yield (f"Figure 14, {side}: STP, mean", ">= 1.57" if ours else "", f"{at['stp']:.2f}")
        if ours and STREAM_PRIORITIES in common:
            for what, worse in zip(
                ("LS is later", "each repetition of LS is later"), later(pairs, common[STREAM_PRIORITIES])
            ):
                yield (
                    f"{side}: pairs in which {what} than under MPS with stream priorities",
                    "none",
                    ", ".join(named(pair) for pair in worse) or "none",
                )


def over_alone(at, pair, alone_ms):
    """LS's turnaround over that alone: the median, and the range of the repetitions."""
    times = [time_ms / alone_ms[pair[1]] for time_ms in turnarounds(at)]
    return f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"


def reserve_row(capsm, pairs, alone_ms):
    """Figure 11, of one size of the reserve."""
    return (
        f"Figure 11, reserve of {capsm}/{CAPSM}: LS's turnaround over alone",
        "< 2" if capsm >= RESERVE else "",
        ", ".join(f"{named(pair)} {over_alone(at, pair, alone_ms)}" for pair, at in sorted(pairs.items())),
    )


def application(schedulers, name, milliseconds):
    return schedulers.application(name, milliseconds, SMGUARD[name])


def meet(lab, schedulers, side, batch, shorts):
    """summary() of each pair, with the batch kernels one after the other."""
    slices, priorities, reserve = side
    lab.gpuctl("set", "ls", f"reserve={round(lab.sms() * reserve / CAPSM)}", "reserve-mode=strict")
    stretch = 1.15 * CAPSM / (CAPSM - reserve)
    found = {}
    for one in batch:
        meeting = Meeting(schedulers, [one], shorts, DELAY_MS, stretch, OFF_MS)
        found |= meeting.summaries((slices, priorities), REPETITIONS)
    return found


def create_slices(lab):
    for path in ("set", "batch", "ls"):
        lab.gpuctl("create-slice", path)
    lab.gpuctl("create-slice", "high", "--priority", 50)


def measured_alone(lab):
    """Schedulers, the LS kernels and the batch kernels, each measured alone."""
    schedulers = Schedulers(lab)
    schedulers.calibrate()
    of_ls, of_batch = lab.size((LS, BATCH), [{n: of[n] for n in names} for of, names in zip((LS, BATCH), REHEARSED)])
    shorts, batch = ([application(schedulers, name, of[name]) for name in of] for of in (of_ls, of_batch))
    schedulers.measure_alone([(one, {**of_ls, **of_batch}[one.name]) for one in shorts + batch])
    lab.gpuctl("set", "/", "policy=share")
    return schedulers, shorts, batch


def step_smguard(lab):
    """SMGuard's 24 pairs: LS beside batch under MPS, with priorities, and with reserves of several sizes."""
    began = time.monotonic()
    with lab.gpuctld():
        create_slices(lab)
        schedulers, shorts, batch = measured_alone(lab)
        alone_ms = {one.name: one.plain_ms for one in shorts + batch}
        yield ("alone", "", ", ".join(f"{name} {ms:.2f} ms" for name, ms in alone_ms.items()))
        found = {}
        for name, side in SIDES.items():
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"{name}: NOT MEASURED", "", "no time left")
                continue
            found[name] = meet(lab, schedulers, side, batch, shorts)
        yield from rows(found)
        beside = [one for one in batch if one.name in OTHER_RESERVES_BESIDE]
        for capsm in sorted((*OTHER_RESERVES, RESERVE)):
            known = found.get(f"reserve of {RESERVE}/{CAPSM}") if capsm == RESERVE else None
            if known is None and time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"Figure 11, reserve of {capsm}/{CAPSM}: NOT MEASURED", "", "no time left")
                continue
            side = (("batch", "ls"), ("none", "none"), capsm)
            yield reserve_row(capsm, known or meet(lab, schedulers, side, beside, shorts), alone_ms)
        yield ("wrong results", "0", str(schedulers.wrong))
