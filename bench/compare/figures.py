"""Reads the figures of a measurement: of raw.jsonl and table.txt (scripts/measure.sh), and of corun.json
(bench/corun.sh).

A figure has a name, one value for each time that it was measured, and a spread. Rows that have the same name in one
file are one figure. What differs from run to run, such as a duration that was found first, is left out of names.
"""

import dataclasses
import json
import re
import statistics

ROW_FIGURE, ROW_TARGET = 86, 13  # widths of a row of table.txt (bench/measure.py)
NUMBER = r"[-+]?\d+(?:\.\d+)?"
RANGE = re.compile(rf"({NUMBER})[^(]*\(({NUMBER}) to ({NUMBER})\)")
BOUND = re.compile(rf"(?:(\w+) )?(<=|>=) {NUMBER}( %)?")
EXACT = re.compile(r"(\d+)(?: errors)?")
WRONG = re.compile(r"(\d+) of \d+ wrong")
VARIES = re.compile(
    rf" \([^)]*\)|, n=\d+|, {NUMBER} (?:us|ms)(?=:)|\d+ x \d+ rounds of {NUMBER} ms, |(?<=:) \d+ launches, .*"
)


@dataclasses.dataclass
class Figure:
    """`lower`: less is better. `ours`: of gpuctl; otherwise of what it is compared with. `exact`: a count of mistakes,
    of which one more is worse."""

    lower: bool
    ours: bool = True
    exact: bool = False
    values: list = dataclasses.field(default_factory=list)
    least: float | None = None
    greatest: float | None = None

    def add(self, value, least=None, greatest=None):
        self.values.append(value)
        known = [bound for bound in (self.least, self.greatest, least, greatest) if bound is not None]
        if known:
            self.least, self.greatest = min(known), max(known)

    @property
    def value(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Greatest less least of all that is known of it; None if it was measured once and has no range."""
        if self.exact:
            return 0
        if len(self.values) < 2 and self.least is None:
            return None
        bounds = [*self.values, *(bound for bound in (self.least, self.greatest) if bound is not None)]
        return max(bounds) - min(bounds)


def read(path):
    """The figures of a file by name, and the names of rows that have a target but no number to compare."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        if path.endswith(".json"):
            return of_corun(json.loads(text)), []
        rows = of_raw(text) if path.endswith(".jsonl") else of_table(text)
        return of_rows(rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a result of measure.sh or corun.sh: {type(error).__name__}: {error}") from None


def of_raw(text):
    """(step, figure, target, measured) of raw.jsonl."""
    for number, line in enumerate(text.splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if "row" in entry:
            yield (entry["step"], *entry["row"])


def of_table(text):
    """The same of table.txt, or of several tables in one file."""
    step = ""
    for line in text.splitlines():
        if line.startswith("-- "):
            step = line[3:].partition(":")[0]
        elif len(line) > ROW_FIGURE and not line.startswith("#"):
            figure, target, measured = cut(line)
            if target:
                yield step, figure, target, measured


def cut(line):
    """A row's three columns. A figure that is longer than its column moves the others; then the target is looked
    for."""
    end = ROW_FIGURE
    if line[end - 1] != " " and (bound := re.search(r" (?=(?:p\d+ )?(?:<=|>=) )", line[end:])):
        end += bound.start()
    rest = line[end + 1 :]
    return line[:end].strip(), rest[:ROW_TARGET].strip(), rest[ROW_TARGET:].strip()


def of_rows(rows):
    found, unread = {}, []
    for step, figure, target, measured in rows:
        targets, parts = target.split("; "), measured.split("; ")
        if len(targets) != len(parts):
            targets, parts = [target], [measured]
        for number, (wanted, part) in enumerate(zip(targets, parts)):
            name = f"{step}: {VARIES.sub('', figure)}" + (f" [{number + 1}]" if number else "")
            read_one = value_of(wanted, part)
            if read_one is None:
                if wanted:
                    unread.append(name)
                continue
            figure_of, numbers = read_one
            found.setdefault(name, figure_of).add(*numbers)
    return found, unread


def value_of(target, measured):
    """A new Figure and (value, least, greatest) of a row with a target, or None where no number is certain to be the
    figure."""
    if wrong := WRONG.fullmatch(measured):
        return Figure(lower=True, exact=True), (int(wrong[1]), None, None)
    if (exact := EXACT.fullmatch(target)) and (got := re.match(r"\d+", measured)):
        return Figure(lower=True, exact=True), (abs(int(got[0]) - int(exact[1])), None, None)
    bound = BOUND.fullmatch(re.sub(r" (?:us|ms|s)$", "", target))
    if bound is None:
        return None
    label, direction, per_cent = bound.groups()
    empty = Figure(lower=direction == "<=")
    if label:
        got = re.search(rf"\b{label} ({NUMBER})", measured)
        return (empty, (float(got[1]), None, None)) if got else None
    if per_cent:
        got = re.fullmatch(rf"({NUMBER}) %", measured)
        return (empty, (float(got[1]), None, None)) if got else None
    if got := RANGE.match(measured):
        return empty, tuple(float(number) for number in got.groups())
    got = re.match(NUMBER + r"(?![\d.]|, \d)", measured)
    return (empty, (float(got[0]), None, None)) if got else None


CORUN = {"p50_us": True, "p99_us": True, "throughput": False}  # figure of a point: whether less is better


def of_corun(data):
    """Of each LS x batch and configuration, and of each of FLEP's pairs."""
    found = {}
    kinds = {name: at["kind"] for name, at in data["configurations"].items()}

    def put(name, lower, kind, at):
        if at:
            figure = found.setdefault(name, Figure(lower, ours=kind == "ours"))
            figure.values += [at["median"]] * at["rounds"]
            figure.least, figure.greatest = (at["least"], at["greatest"]) if at["rounds"] > 1 else (None, None)

    for cell in data["cells"]:
        where = f"{cell['ls']} x {cell['batch']}"
        for name, lower in CORUN.items():
            put(f"{where}, alone: {name}", lower, "alone", cell["alone"].get(name))
            for configuration, point in cell["points"].items():
                put(f"{where}, {configuration}: {name}", lower, kinds[configuration], point.get(name))
    for configuration, pairs in data.get("flep", {}).get("points", {}).items():
        for pair, at in pairs.items():
            for name in ("short_ms", "both_ms"):
                put(f"{pair}, {configuration}: {name}", True, kinds[configuration], at[name])
    return found
