"""What a run of the things of a day prints at its end: what was wrong, what was not judged and why, and a table with a
row for each program and a column for each kind of run."""

from day_matrix import PLAIN
from matrix import NO_TIME, RIGHT, SKIPPED, UNSOUND, WRONG
from table import MOST_FAILURES, aligned

OK, BAD, NOT_JUDGED, NOT_RUN = "ok", "WRONG", "-", "."


def word(row):
    if row.verdict in (RIGHT, WRONG):
        return OK if row.verdict == RIGHT else BAD
    return NOT_RUN if row.note == NO_TIME else NOT_JUDGED


def words(rows, names, columns):
    """{(program, mode, kind): word}: what is not judged plain has that in all its columns."""
    found = {(row.program, row.mode, row.run): word(row) for row in rows}
    for name in names:
        nowhere = found.get((name, "", ""))
        for mode, kind in columns:
            plain = found.get((name, mode, PLAIN), NOT_RUN)
            found.setdefault((name, mode, kind), nowhere or (plain if plain != OK else NOT_RUN))
    return found


def grid(rows, names, modes, kinds):
    columns = [(mode, kind) for mode in modes for kind in (PLAIN, *kinds)]
    found = words(rows, names, columns)
    head = [["", *(mode if kind == PLAIN else "" for mode, kind in columns)], ["", *(kind for _, kind in columns)]]
    body = [[name, *(found[name, *column] for column in columns)] for name in names]
    counted = []
    for column in columns:
        have = [found[name, *column] for name in names]
        counted.append(f"{have.count(OK)}/{have.count(OK) + have.count(BAD)}")
    return aligned([*head, *body, ["ok of judged", *counted]])


def not_judged(rows):
    """One line for each program and reason."""
    reasons = {}
    for row in rows:
        if row.verdict in (UNSOUND, SKIPPED) and row.note != NO_TIME:
            reasons.setdefault((row.program, row.note), []).append(f"{row.mode} {row.run}".strip())
    said = [
        f"  {name}: {note}" + (f" ({', '.join(where)})" if any(where) else "")
        for (name, note), where in reasons.items()
    ]
    return [f"not judged: {len({name for name, _ in reasons})} programs", *said] if said else []


def report(rows, names, modes, kinds):
    """The lines to print, the table last."""
    wrong = [row for row in rows if row.verdict == WRONG]
    lines = [f"WRONG: {len(wrong)}"] if wrong else []
    lines += [f"  {row.program} {row.mode} {row.run}: {row.note}" for row in wrong[:MOST_FAILURES]]
    missed = sum(row.note == NO_TIME for row in rows)
    lines += not_judged(rows) + ([f"no time left for {missed} runs"] if missed else [])
    return [*lines, "", *grid(rows, names, modes, kinds)]
