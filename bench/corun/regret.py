"""How far a target of latency is from the best that any configuration reaches in the same cell.

A configuration with a target says so in its description: "latency=2x" or "latency=5ms". A multiple is of the p99 alone.
gpuctld has targets for bursts (docs/latency.md). So p99 is that of requests from when they are begun, without the time
that they waited for earlier ones; where not all were served, with it. A configuration *meets* the target if the median
of its p99 is at most that. Where any one does, regret is in batch: the
throughput of the configuration with the target over that of the best one that meets it. Where none does, regret is in
p99: over the least that there is. Medians of rounds; a few per cent are noise.
"""

import re
from typing import NamedTuple

MOST_P99, LEAST_BATCH, LEAST_MET = 1.1, 0.93, 0.95
UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}


class Regret(NamedTuple):
    ls: str
    batch: str
    name: str
    target_us: float
    p99_us: float
    met: bool
    best: str  # the configuration that it is compared with
    can_be_met: bool  # by any configuration
    ratio: float  # of batch where it can be met, else of p99

    @property
    def is_good(self):
        return self.met and self.ratio >= LEAST_BATCH if self.can_be_met else self.ratio <= MOST_P99


def target_of(description):
    """The number and its unit, "x" for a multiple; None: it has no target."""
    found = re.search(r"\blatency=([\d.]+)(x|us|ms|s)\b", description)
    return (float(found[1]), found[2]) if found else None


def p99_of(point):
    """Older files have it of requests alone."""
    return point.get("burst_p99_us", point["p99_us"])["median"]


def target_us(target, alone):
    """None: what LS takes alone was not measured."""
    number, unit = target
    if unit != "x":
        return number * UNITS_US[unit]
    return number * p99_of(alone) if alone["p99_us"] else None


def regret(cell, name, at_most_us):
    p99 = {other: p99_of(point) for other, point in cell["points"].items()}
    batch = {other: point["throughput"]["median"] for other, point in cell["points"].items()}
    meet = [other for other in p99 if p99[other] <= at_most_us]
    best = max(meet, key=batch.get) if meet else min(p99, key=p99.get)
    compared = batch if meet else p99
    return Regret(
        *(cell["ls"], cell["batch"], name, at_most_us, p99[name], name in meet, best, bool(meet)),
        compared[name] / compared[best] if compared[best] else 0.0,
    )


def all_of(cells, configurations):
    """The regrets by description of the target, and the cells in which the target is not known."""
    found, unknown = {}, []
    for cell in cells:
        for name in cell["points"]:
            target = target_of(configurations[name]["description"])
            if target is None:
                continue
            at_most_us = target_us(target, cell["alone"])
            if at_most_us is None:
                unknown.append((cell["ls"], cell["batch"], name))
            else:
                found.setdefault(name, []).append(regret(cell, name, at_most_us))
    return found, unknown


def ms(us):
    return f"{us / 1e3:.3g} ms"


def words(one):
    of = "batch of the best that meets it" if one.can_be_met else "least p99; nothing meets it"
    missed = "" if one.is_good else " missed"
    return [f"{one.ls} x {one.batch}", ms(one.target_us), ms(one.p99_us), f"{one.ratio:.3f} of {of}{missed}", one.best]


def summary(regrets):
    can, cannot = [one for one in regrets if one.can_be_met], [one for one in regrets if not one.can_be_met]
    if can:
        met = [one for one in can if one.met]
        missed = "" if len(met) >= LEAST_MET * len(can) else " missed"
        least = f", with {min(one.ratio for one in met):.3f} of its batch or more" if met else ""
        yield f"met in {len(met)} of {len(can)} where any configuration meets it{missed}{least}"
    if cannot:
        yield f"in {len(cannot)} nothing meets it: {max(one.ratio for one in cannot):.3f} of the least p99 at most"


def tables(cells, configurations):
    """For each configuration with a target its rows as words, the head first."""
    found, unknown = all_of(cells, configurations)
    for name, regrets in found.items():
        head = [
            f"{name}: regret",
            "target",
            "p99 of bursts",
            f"batch at least {LEAST_BATCH}, or p99 at most {MOST_P99}",
            "beside",
        ]
        yield [head, *(words(one) for one in regrets), *([line, "", "", "", ""] for line in summary(regrets))]
    if unknown:
        yield [["no regret is known: LS was not measured alone"], *([f"{ls} x {b}, {name}"] for ls, b, name in unknown)]
