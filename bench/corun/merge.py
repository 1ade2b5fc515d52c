"""Puts together the cells of several results, each cell as it was measured, with the machine and time of its own.

python3 -m bench.corun.merge FIRST.json SECOND.json > ALL.json
"""

import argparse
import json


def fullness(cell):
    """How many rounds a cell has in all its configurations."""
    return sum(at["p99_us"]["rounds"] for at in cell["points"].values())


def merged(parts):
    """Takes the fullest of a cell's results, and of equally full ones the latest. Runs of different files are not
    mixed.
    """
    whole = {**parts[-1], "notes": [], "runs": [], "missing": [], "cells": [], "configurations": {}, "workloads": {}}
    cells = {}
    for part in parts:
        for field in ("configurations", "workloads"):
            whole[field].update(part[field])
        for cell in part["cells"]:
            key = cell["ls"], cell["batch"]
            if key not in cells or fullness(cell) >= fullness(cells[key][0]):
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
    parts = [json.load(file) for file in parser.parse_args().results]
    print(json.dumps(merged(parts), indent=1))


if __name__ == "__main__":
    main()
