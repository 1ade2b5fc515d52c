"""What a run of the suite prints at its end, and what it writes as JSON."""

import collections
import dataclasses
import math
import statistics

from head import BUILDS, PYTHON_BUILD
from matrix import RIGHT, SKIPPED, UNSOUND, WRONG

COUNTED = (RIGHT, WRONG)
MOST_FAILURES = 200


def in_order(values, order):
    return [value for value in order if value in values] + sorted(set(values) - set(order))


def counts(rows):
    """Right of counted, for each mode and kind of run, and each build."""
    every = {row.build for row in rows}
    builds = in_order(every - {"-"}, (*BUILDS, PYTHON_BUILD))
    kinds = list(dict.fromkeys((row.mode, row.run) for row in rows))
    found = collections.Counter((row.mode, row.run, row.build, row.verdict) for row in rows)
    again = collections.Counter((row.mode, row.run) for row in rows if row.reached)
    table = [["", *builds, "unsound", "skipped", *(["again"] if again else [])]]
    for mode, run in kinds:

        def number(build, *verdicts, key=(mode, run)):
            return sum(found[*key, build, verdict] for verdict in verdicts)

        cells = [
            f"{number(build, RIGHT)}/{number(build, *COUNTED)}" if number(build, *COUNTED) else "-" for build in builds
        ]
        table.append(
            [
                f"{mode} {run}".strip(),
                *cells,
                *(str(sum(number(build, verdict) for build in every)) for verdict in (UNSOUND, SKIPPED)),
                *([str(again[mode, run])] if again else []),
            ]
        )
    return aligned(table)


def aligned(table):
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return [
        "  ".join(
            [line[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(line[1:], widths[1:]))]
        ).rstrip()
        for line in table
    ]


def listed(rows, verdict, title):
    found = [row for row in rows if row.verdict == verdict]
    if not found:
        return []
    kept = found[:MOST_FAILURES]
    more = [f"  and {len(found) - len(kept)} more"] if len(found) > len(kept) else []
    return [
        f"{title}: {len(found)}",
        *(f"  {row.program} [{row.build}] {row.mode} {row.run}: {row.note}" for row in kept),
        *more,
    ]


def reasons(rows):
    """Why rows were skipped, and how many for each reason."""
    found = collections.Counter(row.note for row in rows if row.verdict == SKIPPED)
    return (
        [f"skipped: {sum(found.values())}", *(f"  {count} {note}" for note, count in found.most_common())]
        if found
        else []
    )


def reached(rows):
    """Those that were run a second time, and what both times brought."""
    found = [row for row in rows if row.reached]
    if not found:
        return []
    right = sum(row.verdict == RIGHT for row in found)
    return [
        f"reached by another's hang or crash, run again: {len(found)}, of these right: {right}",
        *(
            f"  {row.program} [{row.build}] {row.mode} {row.run}: first {row.reached}; again {row.verdict}"
            for row in found[:MOST_FAILURES]
        ),
    ]


def ratios(rows):
    """Wall time over that of the plain run, of what is right: {(mode, run): [ratio]}."""
    found = {}
    for row in rows:
        if row.verdict == RIGHT and row.run not in ("plain", "compile") and row.plain_s > 0:
            found.setdefault((row.mode, row.run), []).append(row.wall_s / row.plain_s)
    return found


def ratio_lines(rows):
    table = [["wall time / plain", "median", "p90", "most", "of"]]
    for (mode, run), values in ratios(rows).items():
        values.sort()
        table.append(
            [
                f"{mode} {run}",
                f"{statistics.median(values):.3f}",
                f"{values[math.ceil(0.9 * len(values)) - 1]:.3f}",
                f"{values[-1]:.3f}",
                str(len(values)),
            ]
        )
    return aligned(table) if len(table) > 1 else []


def report(rows):
    """The lines to print."""
    parts = (
        counts(rows),
        listed(rows, WRONG, "WRONG"),
        listed(rows, UNSOUND, "unsound (plain already; not counted)"),
        reached(rows),
        reasons(rows),
        ratio_lines(rows),
    )
    return [line for part in parts if part for line in (*part, "")][:-1]


def document(rows, about):
    return {
        **about,
        "rows": [dataclasses.asdict(row) for row in rows],
        "median_ratios": {f"{mode} {run}": statistics.median(values) for (mode, run), values in ratios(rows).items()},
    }


def all_right(rows):
    """Something was counted, and all of it is right."""
    return any(row.verdict == RIGHT and row.run != "compile" for row in rows) and not any(
        row.verdict == WRONG for row in rows
    )
