"""The figures of FLEP's pairs: medians over the rounds, speed-ups over MPS with nothing set, and the table. Pure
functions."""

import statistics

from .results import spread

BASE = "mps"


def points(rounds):
    """For each configuration and pair: the spread of the rounds, and the speed-up over BASE, from the medians."""
    found = {}
    for one in rounds:
        for pair, at in one["pairs"].items():
            of_pair = found.setdefault(one["configuration"], {}).setdefault(pair, {"short_ms": [], "both_ms": []})
            for figure, value in at.items():
                of_pair[figure].append(value)
    spreads = {
        name: {pair: {figure: spread(values) for figure, values in at.items()} for pair, at in pairs.items()}
        for name, pairs in found.items()
    }
    for pairs in spreads.values():
        for pair, at in pairs.items():
            base = spreads.get(BASE, {}).get(pair)
            at["speed_up"] = base["short_ms"]["median"] / at["short_ms"]["median"] if base else None
    return spreads


def lines(flep):
    """The lines of the table: one for each pair, then the means."""
    by_name = flep.get("points", {})
    common = sorted(set.intersection(*(set(pairs) for pairs in by_name.values()))) if by_name else []
    rows = [["pair", "alone"] + list(by_name)]
    for pair in common:
        alone = flep["alone_ms"]["short"][pair.partition("_")[2]]
        rows.append([pair, f"{alone:.3f}"] + [words(pairs[pair]) for pairs in by_name.values()])
    if common:
        rows.append(
            [f"mean speed-up over {BASE} of {len(common)} pairs", ""]
            + [mean(pairs, common) for pairs in by_name.values()]
        )
        whole = [statistics.mean(pairs[pair]["both_ms"]["median"] for pair in common) for pairs in by_name.values()]
        rows.append(["mean time until both are done, ms", ""] + [f"{value:.2f}" for value in whole])
    return rows


def words(at):
    speed_up = "" if at["speed_up"] is None else f" ({at['speed_up']:.1f})"
    return f"{at['short_ms']['median']:.3f}{speed_up}"


def mean(pairs, common):
    ups = [pairs[pair]["speed_up"] for pair in common if pairs[pair]["speed_up"] is not None]
    return f"{statistics.mean(ups):.2f}" if ups else "-"
