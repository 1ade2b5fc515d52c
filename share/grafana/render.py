#!/usr/bin/env python3
"""Draw the panels of the dashboard beside this file without Grafana: render.py PROMETHEUS_URL OUT.svg.

Each panel asks Prometheus what it asks in Grafana, for all instances. What comes back is drawn as its type says, in its
place. Exit status 1, with the panel and the reason on standard error, if Prometheus refuses or does not answer.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

DASHBOARD = pathlib.Path(__file__).with_name("gpuctl.json")
COLUMN, ROW = 50, 28  # pixels of a unit of the grid
TOP, LEFT, BOTTOM = 44, 12, 30  # around the plot of a panel: title and greatest value, margin, legend
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf")


class Asked:
    """A Prometheus, about a time that ends now."""

    def __init__(self, url, minutes, rate_interval):
        self.url = url.rstrip("/")
        self.seconds = 60 * minutes
        self.end = time.time()
        self.step = max(1, self.seconds / 240)
        self.rate_interval = rate_interval

    def series(self, target):
        """(name, labels, [(time, value), ...]) of each series of a panel's target; an instant one has the last time."""
        variables = {"__rate_interval": self.rate_interval}
        query = re.sub(r"\$(\w+)", lambda name: variables.get(name[1], ".*"), target["expr"])
        if target.get("instant"):
            found = self.get("query", query=query, time=self.end)
        else:
            found = self.get("query_range", query=query, start=self.end - self.seconds, end=self.end, step=self.step)
        for one in found:
            labels = one["metric"]
            name = re.sub(r"\{\{(\w+)\}\}", lambda label: labels.get(label[1], ""), target["legendFormat"])
            points = [(at, float(value)) for at, value in one.get("values") or [one["value"]]]
            if points := [(at, value) for at, value in points if math.isfinite(value)]:
                yield name, labels, points

    def get(self, path, **query):
        whole = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(whole, timeout=30) as said:
            return json.load(said)["data"]["result"]

    def x(self, at, width):
        return LEFT + (1 - (self.end - at) / self.seconds) * (width - 2 * LEFT)


def amount(value, unit):
    """A value as a person reads it, in one of the units that the dashboard has."""
    if unit == "bool_yes_no":
        return "yes" if value else "no"
    if unit == "bytes":
        return f"{value / 2**30:.3g} GiB"
    return f"{value:.3g}" + {"s": " s", "ops": " /s"}.get(unit, "")


def text(x, y, content, more='font-size="11"'):
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(content)}</text>'


def draw_values(panel, found, width, height, _):
    """The latest value of each series, or its name where the panel shows names."""
    named, unit = panel["options"].get("textMode") == "name", panel["fieldConfig"]["defaults"]["unit"]
    for number, (name, _, points) in enumerate(found):
        shown = name if named else amount(points[-1][1], unit)
        yield text(width / 2, TOP + 30 * (number + 1), shown, 'class="value" font-size="22" text-anchor="middle"')


def draw_lines(panel, found, width, height, asked):
    """A line for each series, with gaps where it has no values; the greatest value above, the legend below."""
    most = max(value for _, _, points in found for _, value in points)
    yield text(LEFT, TOP - 6, amount(most, panel["fieldConfig"]["defaults"]["unit"]))
    legend = []
    for number, (name, _, points) in enumerate(found):
        color, path, before = COLORS[number % len(COLORS)], [], -math.inf
        for at, value in points:
            y = height - BOTTOM - value / (most or 1) * (height - TOP - BOTTOM)
            path.append(f"{'L' if at - before < 1.5 * asked.step else 'M'}{asked.x(at, width):.1f},{y:.1f}h0")
            before = at
        yield f'<path class="line" fill="none" stroke="{color}" stroke-linecap="round" d="{" ".join(path)}"/>'
        legend.append(f'<tspan fill="{color}" dx="8">{escape(name)}</tspan>')
    yield f'<text x="0" y="{height - 10}" font-size="11">{"".join(legend)}</text>'


def draw_heatmap(panel, found, width, height, asked):
    """A row for each bucket that ever has something beside what smaller ones hold too; the darker a cell, the more."""
    rows, below = [], {}
    for bound, counts in sorted((float(labels["le"]), dict(points)) for _, labels, points in found):
        rows.append((bound, {at: count - below.get(at, 0) for at, count in counts.items() if count > below.get(at, 0)}))
        below = counts
    rows = [(bound, own) for bound, own in rows if own]
    most = max((count for _, own in rows for count in own.values()), default=0)
    for number, (bound, own) in enumerate(rows):
        high = (height - TOP - BOTTOM) / len(rows)
        y = height - BOTTOM - (number + 1) * high
        for at, count in own.items():
            wide = width * asked.step / asked.seconds
            place = f'x="{asked.x(at, width) - wide:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
            yield f'<rect class="cell" {place} fill="#d94801" fill-opacity="{count / most:.2f}"/>'
        yield text(LEFT, y + high / 2 + 4, "up to " + amount(bound, panel["options"]["yAxis"]["unit"]))


DRAW = {"stat": draw_values, "timeseries": draw_lines, "heatmap": draw_heatmap}


def draw(panel, asked):
    x, width, y, height = (panel["gridPos"][key] * pixels for key, pixels in zip("xwyh", (COLUMN, COLUMN, ROW, ROW)))
    yield f'<svg class="panel" x="{x}" y="{y}" width="{width}" height="{height}">'
    yield f'<title>{escape(panel["title"])}</title><rect width="100%" height="100%" fill="none" stroke="#cccccc"/>'
    yield text(LEFT, 20, panel["title"], 'font-weight="bold"')
    found = [one for target in panel["targets"] for one in asked.series(target)]
    yield from DRAW[panel["type"]](panel, found, width, height, asked) if found else [text(LEFT, TOP, "no data")]
    yield "</svg>"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    arguments.add_argument("url", help="of a Prometheus, such as http://localhost:9090")
    arguments.add_argument("out", type=pathlib.Path, help="the SVG to write")
    arguments.add_argument("--minutes", type=float, default=60, help="how much of the past to draw (60)")
    arguments.add_argument("--rate-interval", default="1m", help="four times what Prometheus scrapes at (1m)")
    given = arguments.parse_args()
    asked = Asked(given.url, given.minutes, given.rate_interval)
    panels = json.loads(DASHBOARD.read_text())["panels"]
    high = ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{24 * COLUMN}" height="{high}" font-family="sans-serif">']
    for panel in panels:
        try:
            lines += draw(panel, asked)
        except OSError as error:
            reason = error.read().decode() if isinstance(error, urllib.error.HTTPError) else error
            sys.exit(f"panel {panel['title']}: {reason}")
    given.out.write_text("\n".join([*lines, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
