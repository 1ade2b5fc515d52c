"""The measured runs, in one JSON file that is rewritten after each cell, and the points computed from them.

A run has the names of LS, batch (null in a run alone) and configuration, the number of the round, the reports of LS and
each batch program, and in slices what the daemon reports of them. A point of a cell and a configuration has the median,
least and greatest of the rounds, for LS p50 and p99 (us) and batch throughput.
"""

import json
import os
import pathlib
import statistics

from . import frontier
from .configurations import ALONE, OURS, STOCK


def spread(values):
    """Median and range; None without values."""
    return (
        {"median": statistics.median(values), "least": min(values), "greatest": max(values), "rounds": len(values)}
        if values
        else None
    )


class Results:
    def __init__(self, path, head):
        self.path = pathlib.Path(path)
        self.data = {**head, "notes": [], "runs": [], "missing": [], "cells": []}

    def note(self, text):
        self.data["notes"].append(text)

    def has(self, ls, batch, configuration, number):
        key = names(ls, batch, configuration, number)
        return any(all(run[field] == value for field, value in key.items()) for run in self.data["runs"])

    def add(self, ls, batch, configuration, number, reports, usage=None):
        run = names(ls, batch, configuration, number)
        run["ls_report"] = reports[0] if ls else None
        run["batch_reports"] = reports[1 if ls else 0 :]
        if batch and batch.together:
            run["batch_reports"] = [
                {"of": name, **report} for name, report in zip(batch.together, run["batch_reports"])
            ]
        if usage:
            run["usage"] = usage
        self.data["runs"].append(run)

    def miss(self, ls, batch, configuration, numbers, reason, refused=False):
        """Notes a run that is missing. `refused`: by gpuctl, because it does not know a setting of the
        configuration.
        """
        for number in numbers:
            self.data["missing"].append(
                {**names(ls, batch, configuration, number), "reason": reason, "refused": refused}
            )

    def save(self):
        self.data["cells"] = cells(self.data)
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, self.path)


def names(ls, batch, configuration, number):
    return {
        "ls": ls.name if ls else None,
        "batch": batch.name if batch else None,
        "configuration": configuration.name,
        "round": number,
    }


def throughput(run):
    """Of programs of one kind the sum of their rates; of different ones, whose steps differ, the geometric mean."""
    rates = [report["rate"] for report in run["batch_reports"]]
    if "of" in run["batch_reports"][0]:
        return statistics.geometric_mean(rates) if all(rates) else 0.0
    return sum(rates)


def rates(runs):
    """Of different batch programs: the rate of each."""
    found = {}
    for report in (report for run in runs for report in run["batch_reports"] if "of" in report):
        found.setdefault(report["of"], []).append(report["rate"])
    return {name: spread(values) for name, values in found.items()}


def burst_p99_us(report):
    """Of the bursts of LS: its requests without the time that they waited for earlier ones. Where not all were served,
    with it.
    """
    return report["p99_us"] if report["unserved"] else report.get("service_p99_us", report["p99_us"])


def point(runs):
    """The point of the runs of one cell in one configuration, or of a program alone."""
    ls_reports = [run["ls_report"] for run in runs if run["ls_report"]]
    return {
        "p50_us": spread([report["p50_us"] for report in ls_reports]),
        "p99_us": spread([report["p99_us"] for report in ls_reports]),
        "burst_p99_us": spread([burst_p99_us(report) for report in ls_reports]),
        "unserved": sum(report["unserved"] for report in ls_reports),
        "throughput": spread([throughput(run) for run in runs if run["batch_reports"]]),
        "rates": rates(runs),
    }


def cells(data):
    """Each LS x batch with measured runs: its points, and the places of ours relative to the stock ones."""
    kinds = {name: about["kind"] for name, about in data["configurations"].items()}
    grouped = {}
    for run in data["runs"]:
        grouped.setdefault((run["ls"], run["batch"], run["configuration"]), []).append(run)
    found = []
    for ls, batch in dict.fromkeys((ls, batch) for ls, batch, _ in grouped if ls and batch):
        points = {
            name: point(runs) for (of_ls, of_batch, name), runs in grouped.items() if (of_ls, of_batch) == (ls, batch)
        }
        alone = {
            **point(grouped.get((ls, None, ALONE), [])),
            "throughput": point(grouped.get((None, batch, ALONE), []))["throughput"],
        }
        for at in points.values():
            at["share"] = at["throughput"]["median"] / alone["throughput"]["median"] if alone["throughput"] else None
        found.append({"ls": ls, "batch": batch, "alone": alone, "points": points, **compare(points, kinds)})
    return found


def compare(points, kinds):
    """Compares medians: the frontier of the stock configurations, the place of each of ours relative to it, and the
    best of ours.
    """
    medians = {name: (at["p99_us"]["median"], at["throughput"]["median"]) for name, at in points.items()}
    stock = {name: at for name, at in medians.items() if kinds[name] == STOCK}
    places = {name: frontier.place(at, stock) for name, at in medians.items() if kinds[name] == OURS} if stock else {}
    best = min(places, key=lambda name: places[name]["distance"], default=None)
    return {"stock_frontier": frontier.frontier(stock), "ours": places, "best_of_ours": best}
