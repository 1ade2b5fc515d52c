"""The results as text: a block for each LS x batch, then one line for each.

python3 -m bench.corun.table FILE.json...
"""

import json
import sys

from . import aims, regret
from .configurations import OURS

COLUMNS = ("configuration", "LS p50 us", "LS p99 us", "batch /s", "of alone", "distance")


def figure(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def ranged(at):
    """The text "median (least..greatest)"."""
    if at is None:
        return "-"
    if at["rounds"] == 1:
        return figure(at["median"])
    return f"{figure(at['median'])} ({figure(at['least'])}..{figure(at['greatest'])})"


def each(at):
    """What the different batch programs do, if they are different."""
    said = ", ".join(f"{name} {figure(rate['median'])}" for name, rate in at.get("rates", {}).items())
    return f": {said}" if said else ""


def aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]


def mark(cell, name):
    """* for a stock configuration on the frontier; + for one of ours on the frontier or beyond it."""
    if name in cell["stock_frontier"]:
        return "*"
    return "+" if cell["ours"].get(name, {}).get("on_frontier") else " "


def block(cell, data):
    yield f"{cell['ls']} x {cell['batch']}: LS {data['workloads'][cell['ls']]['ls']}"
    yield f"    batch {data['workloads'][cell['batch']]['batch']}"
    if "machine" in cell:
        yield f"    {cell['machine']['gpu']}, {cell['machine']['when']}, commit {cell['machine']['commit']}"
    alone = cell["alone"]
    rows = [
        ["  " + COLUMNS[0], *COLUMNS[1:]],
        ["  alone", ranged(alone["p50_us"]), ranged(alone["p99_us"]), ranged(alone["throughput"]), "", ""],
    ]
    for name in data["configurations"]:
        at = cell["points"].get(name)
        if at:
            place = cell["ours"].get(name)
            late = f" ({at['unserved']} unserved)" if at["unserved"] else ""
            rows.append(
                [
                    f"{mark(cell, name)} {name}",
                    ranged(at["p50_us"]),
                    ranged(at["p99_us"]) + late,
                    ranged(at["throughput"]) + each(at),
                    "" if at["share"] is None else f"{at['share']:.3f}",
                    f"{place['distance']:.2f}" if place else "",
                ]
            )
    yield from aligned(rows)
    for missing in reasons(data, cell):
        yield f"  not run: {missing}"


def reasons(data, cell):
    """Each configuration and reason once."""
    found = {}
    for missing in data["missing"]:
        if missing["ls"] in (cell["ls"], None) and missing["batch"] in (cell["batch"], None):
            found.setdefault((missing["configuration"], missing["reason"]), []).append(str(missing["round"] + 1))
    return [f"{name}, round {', '.join(rounds)}: {reason}" for (name, reason), rounds in found.items()]


def summary_row(cell):
    best = cell["best_of_ours"]
    name = f"{cell['ls']} x {cell['batch']}"
    if best is None:
        return [name, "-", "-", "-"]
    at, place = cell["points"][best], cell["ours"][best]
    near = cell["points"][place["nearest"]["name"]]
    verdict = "on the frontier" if place["on_frontier"] else "behind"

    def words(of, called):
        return f"{called}: p99 {figure(of['p99_us']['median'])} us, {figure(of['throughput']['median'])}/s"

    return [name, words(at, best), words(near, place["nearest"]["name"]), f"{verdict}, {place['distance']:.2f}"]


def lines(data):
    machine, options = data["machine"], data["options"]
    yield f"{machine['gpu']}, {machine['cores']} cores, {machine['when']}, commit {machine['commit']}"
    yield (
        f"rounds {options['rounds']} of {options['seconds']} s after {options['settle']} s, "
        f"median (least..greatest); {data['order']}"
    )
    yield (
        "* on the frontier of the stock configurations; + ours, dominated by none of them; "
        "distance: less than 1 is beyond that frontier by this factor"
    )
    for note in data["notes"]:
        yield f"note: {note}"
    for cell in data["cells"]:
        yield ""
        yield from block(cell, data)
    if data["cells"] and any(about["kind"] == OURS for about in data["configurations"].values()):
        yield ""
        yield from aligned(
            [["LS x batch", "best of ours", "the stock configuration nearest to it", "distance"]]
            + [summary_row(cell) for cell in data["cells"]]
        )
    for rows in aims.tables(data["cells"]):
        yield ""
        yield from aligned(rows)
    for rows in regret.tables(data["cells"], data["configurations"]):
        yield ""
        yield from aligned(rows)
    seen = {(cell["ls"], cell["batch"]) for cell in data["cells"]}
    for pair in dict.fromkeys(
        (missing["ls"], missing["batch"]) for missing in data["missing"] if missing["ls"] and missing["batch"]
    ):
        if pair not in seen:
            some = next(missing for missing in data["missing"] if (missing["ls"], missing["batch"]) == pair)
            yield f"not run: {pair[0]} x {pair[1]}: {some['reason']}"


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            print("\n".join(lines(json.load(file))))


if __name__ == "__main__":
    main()
