"""Draws the results as one SVG: a panel for each LS x batch, with LS p99 (logarithmic) against batch throughput
relative to batch alone.

Each configuration is a point with its number in the legend: circles are stock, triangles are ours. The line joins the
stock configurations that no other stock configuration dominates.

    python3 -m bench.corun.plot FILE.json > FILE.svg
"""

import html
import json
import math
import sys

from .configurations import ALONE, OURS

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 520, 380, 60, 20, 44, 44
ACROSS = 2
COLORS = {"stock": "#1f6fb4", "ours": "#c8321e"}
LEGEND_ACROSS, LEGEND_ROW = 4, 16
NEAR = 9  # numbers are moved apart if they are as near as that


class Panel:
    def __init__(self, cell, configurations):
        self.cell, self.kinds = cell, {name: about["kind"] for name, about in configurations.items()}
        self.numbers = numbered(configurations)
        whole = cell["alone"]["throughput"]
        self.whole = (
            whole["median"] if whole else max((at["throughput"]["median"] for at in cell["points"].values()), default=0)
        )
        latencies = [at["p99_us"][end] for at in cell["points"].values() for end in ("least", "greatest")]
        latencies += [cell["alone"]["p99_us"]["median"]] if cell["alone"]["p99_us"] else []
        low, high = math.log10(max(min(latencies), 1e-3)), math.log10(max(max(latencies), 1e-3))
        self.low, self.high = math.floor(low * 4 - 0.2) / 4, math.ceil(high * 4 + 0.2) / 4
        shares = [self.share(at["throughput"][end]) for at in cell["points"].values() for end in ("least", "greatest")]
        self.least, self.most = math.floor(min(shares) * 10) / 10, max(1.05, max(shares) + 0.02)

    def share(self, rate):
        return rate / self.whole if self.whole else 0.0

    def x(self, rate):
        return LEFT + (self.share(rate) - self.least) / (self.most - self.least) * (WIDE - LEFT - RIGHT)

    def y(self, latency):
        return (
            HIGH - BOTTOM - (math.log10(max(latency, 1e-3)) - self.low) / (self.high - self.low) * (HIGH - TOP - BOTTOM)
        )

    def draw(self):
        title = f"{self.cell['ls']} x {self.cell['batch']}"
        yield f'<text x="{WIDE / 2}" y="18" text-anchor="middle" font-size="14">{html.escape(title)}</text>'
        yield from self.axes()
        frontier = sorted(
            (self.cell["points"][name] for name in self.cell["stock_frontier"]),
            key=lambda at: at["throughput"]["median"],
        )
        corners = [f"{self.x(at['throughput']['median']):.1f},{self.y(at['p99_us']['median']):.1f}" for at in frontier]
        yield f'<polyline points="{" ".join(corners)}" fill="none" stroke="{COLORS["stock"]}" stroke-dasharray="4 3"/>'
        taken = []
        for name, at in self.cell["points"].items():
            yield from self.mark(name, at, taken)

    def axes(self):
        right, bottom = WIDE - RIGHT, HIGH - BOTTOM
        yield f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#888"/>'
        for decade in range(math.floor(self.low), math.ceil(self.high) + 1):
            for digit in (1, 2, 5):
                value = digit * 10.0**decade
                if self.low <= math.log10(value) <= self.high:
                    y = self.y(value)
                    yield f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                    yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        steps = max(1, round((self.most - self.least) * 10))
        for tenth in range(round(self.least * 10), round(self.most * 10) + 1, 2 if steps > 6 else 1):
            x = LEFT + (tenth / 10 - self.least) / (self.most - self.least) * (right - LEFT)
            if x <= right:
                yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#ddd"/>'
                yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tenth / 10:g}</text>'
        axis = f'<text x="{(LEFT + right) / 2}" y="{HIGH - 10}" text-anchor="middle">'
        yield f"{axis}batch throughput, of that alone</text>"
        yield f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">LS p99, us</text>'
        alone = self.cell["alone"]["p99_us"]
        if alone:
            y = self.y(alone["median"])
            yield f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#3a3" stroke-dasharray="2 3"/>'
            yield f'<text x="{right - 2}" y="{y - 3:.1f}" text-anchor="end" fill="#3a3">alone</text>'

    def mark(self, name, at, taken):
        color = COLORS[self.kinds[name]]
        x, y = self.x(at["throughput"]["median"]), self.y(at["p99_us"]["median"])
        yield (
            f'<path d="M{x:.1f} {self.y(at["p99_us"]["least"]):.1f}V{self.y(at["p99_us"]["greatest"]):.1f}'
            f'M{self.x(at["throughput"]["least"]):.1f} {y:.1f}H{self.x(at["throughput"]["greatest"]):.1f}" '
            f'stroke="{color}" opacity="0.5"/>'
        )
        yield symbol(x, y, self.kinds[name])
        at_x, at_y = x + 7, y - 3
        while any(abs(at_x - other_x) < NEAR * 1.5 and abs(at_y - other_y) < NEAR for other_x, other_y in taken):
            at_x += NEAR * 1.5
        taken.append((at_x, at_y))
        text = f'<text x="{at_x:.1f}" y="{at_y:.1f}" fill="{color}" font-size="10">'
        yield f"{text}{self.numbers[name]}<title>{html.escape(name)}</title></text>"


def numbered(configurations):
    return {
        name: number
        for number, name in enumerate((name for name, about in configurations.items() if about["kind"] != ALONE), 1)
    }


def symbol(x, y, kind):
    if kind == OURS:
        return f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z" fill="{COLORS[kind]}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[kind]}"/>'


def legend(configurations, wide):
    numbers = numbered(configurations)
    for place, (name, number) in enumerate(numbers.items()):
        x, y = 20 + place % LEGEND_ACROSS * (wide - 20) / LEGEND_ACROSS, LEGEND_ROW * (1 + place // LEGEND_ACROSS)
        kind = configurations[name]["kind"]
        yield symbol(x, y - 4, kind)
        yield f'<text x="{x + 10:.1f}" y="{y}" fill="{COLORS[kind]}">{number} {html.escape(name)}</text>'


def svg(data):
    cells = data["cells"]
    rows = math.ceil(len(cells) / ACROSS)
    wide, high = WIDE * min(ACROSS, max(1, len(cells))), HIGH * max(1, rows)
    above = LEGEND_ROW * (math.ceil(len(numbered(data["configurations"])) / LEGEND_ACROSS) + 1)
    high += above
    fonts = 'font-family="sans-serif" font-size="11"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" {fonts}>'
    yield f'<rect width="{wide}" height="{high}" fill="white"/>'
    yield from legend(data["configurations"], wide)
    for number, cell in enumerate(cells):
        yield f'<g transform="translate({number % ACROSS * WIDE} {above + number // ACROSS * HIGH})">'
        yield from Panel(cell, data["configurations"]).draw()
        yield "</g>"
    yield "</svg>"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(svg(json.load(file))))


if __name__ == "__main__":
    main()
