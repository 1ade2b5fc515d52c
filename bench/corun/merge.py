"""Puts together the cells of several results, each cell as it was measured, with the machine and time of its own.

python3 -m bench.corun.merge [--one-run] FIRST.json SECOND.json > ALL.json

With --one-run the files are parts of one run on one machine: configurations of a cell that are in different ones are
put beside each other.
"""

import argparse
import json

from .results import compare


def fullness(cell):
    """How many rounds a cell has in all its configurations."""
    return sum(at["p99_us"]["rounds"] for at in cell["points"].values())


def joined(cell, other, kinds):
    """One cell of two that have no configuration in common."""
    points = {**cell["points"], **other["points"]}
    alone = {name: cell["alone"].get(name) or other["alone"].get(name) for name in {**cell["alone"], **other["alone"]}}
    return {**cell, "alone": alone, "points": points, **compare(points, kinds)}


def merged(parts, one_run=False):
    """Takes the fullest of a cell's results, and of equally full ones the latest. Runs of different files are not
    mixed, unless they are of one run. ValueError: they are not.
    """
    if one_run and len({(part["machine"]["gpu"], part["machine"]["commit"]) for part in parts}) > 1:
        raise ValueError("these are of different machines or commits")
    whole = {**parts[-1], "notes": [], "runs": [], "missing": [], "cells": [], "configurations": {}, "workloads": {}}
    cells = {}
    for part in parts:
        for field in ("configurations", "workloads"):
            whole[field].update(part[field])
        for cell in part["cells"]:
            key = cell["ls"], cell["batch"]
            if one_run and key in cells and not cell["points"].keys() & cells[key][0]["points"].keys():
                kinds = {name: about["kind"] for name, about in whole["configurations"].items()}
                cells[key] = joined(cells[key][0], cell, kinds), part
            elif key not in cells or fullness(cell) >= fullness(cells[key][0]):
                cells[key] = {**cell, "machine": cell.get("machine", part["machine"])}, part
    for (ls, batch), (cell, part) in cells.items():
        whole["cells"].append(cell)
        whole["missing"] += [
            missing
            for missing in part["missing"]
            if missing["ls"] in (ls, None) and missing["batch"] in (batch, None) and missing not in whole["missing"]
        ]
    machines = {part["machine"]["gpu"] for part in parts}
    whole["machine"] = {**parts[-1]["machine"], "gpu": " and ".join(sorted(machines))}
    return whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=argparse.FileType(encoding="utf-8"), metavar="RESULT.json")
    parser.add_argument("--one-run", action="store_true", help="the files are parts of one run on one machine")
    options = parser.parse_args()
    try:
        print(json.dumps(merged([json.load(file) for file in options.results], options.one_run), indent=1))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
