#!/usr/bin/env python3
"""Starts and ends a short program many times, plain and in a slice by turns: none may crash, hang or be wrong; how much
longer does a start take? Exit status 0 if all were right."""

import collections
import concurrent.futures
import statistics
import sys
import time

from compare import difference
from lab import TIME_SLICED
from single import SHORT, Session, parser

FIRST_STARTS = 3  # not counted: they fill the caches


def starts(session, mode, path, number):
    """[(plain, sliced)]: the outcomes of each turn, as many as are started at once. Plain ones only in some turns."""
    at_once, plain_each, turns = session.options.at_once, session.options.plain_each, []
    told = time.monotonic()
    with session.lab.mode(mode), session.lab.serving(), concurrent.futures.ThreadPoolExecutor(at_once) as pool:

        def side(in_slice):
            return list(pool.map(lambda _: session.run([str(path)], in_slice), range(at_once)))

        for turn in range(-FIRST_STARTS, number):
            if session.deadline.passed():
                break
            order = (False, True) if turn // plain_each % 2 == 0 else (True, False)
            outcomes = {in_slice: side(in_slice) if in_slice or turn % plain_each == 0 else [] for in_slice in order}
            turns.append((outcomes[False], outcomes[True]))
            if time.monotonic() - told > 5:
                told = time.monotonic()
                print(f"{mode}: {turn + 1} of {number}", file=sys.stderr, flush=True)
        failure = session.lab.daemon_failure()
    return turns, failure


def verdicts(outcomes, right):
    """How many of these were right, and of each kind of failure."""
    found = collections.Counter()
    for outcome in outcomes:
        if outcome.ended != "by itself":
            found["hung"] += 1
        elif outcome.status < 0:
            found["crashed"] += 1
        elif difference(right, outcome):
            found["wrong"] += 1
        else:
            found["right"] += 1
    return found


def range_of(values, digits):
    ordered = sorted(values)
    return f"{statistics.median(ordered):.{digits}f} ({ordered[0]:.{digits}f} to {ordered[-1]:.{digits}f})"


def main():
    options = parser(__doc__)
    options.add_argument(
        "number", type=int, help="turns, each a plain start and one in a slice, or as many as --at-once says"
    )
    options.add_argument(
        "--plain-each", type=int, default=1, metavar="K", help="a plain start only in each K-th turn (default: 1)"
    )
    options = options.parse_args()
    options.modes = options.modes or (TIME_SLICED,)
    session = Session(options)
    status = 0
    with session.open():
        programs = session.programs(lambda program: program.name == SHORT)
        if not programs:
            sys.exit("compat: the short program is not there")
        whole = session.deadline
        for mode in options.modes:
            session.deadline = whole if mode == options.modes[-1] else whole.share(0.6)
            turns, failure = starts(session, mode, programs[0][1], options.number)
            right = next((outcome for plain, _ in turns for outcome in plain if outcome.status == 0), None)
            if right is None:
                sys.exit(
                    f"{mode}: no plain start ended well: {turns[0][0][0].status_text()}: {turns[0][0][0].err}"
                    if turns
                    else "no time"
                )
            for name, side in (("plain", 0), ("slice", 1)):
                outcomes = [outcome for turn in turns for outcome in turn[side]]
                found = verdicts(outcomes, right)
                counts = ", ".join(f"{found[kind]} {kind}" for kind in ("right", "crashed", "hung", "wrong"))
                print(
                    f"{mode} {name}: {len(outcomes)} starts, {options.at_once} at once: {counts}; "
                    f"wall {range_of([outcome.wall_s * 1000 for outcome in outcomes], 1)} ms"
                )
                for outcome in [each for each in outcomes if each.ended != "by itself" or difference(right, each)][:5]:
                    print(f"  {difference(right, outcome)}; {outcome.err.strip()[-300:]}")
                if side == 1 and found["right"] != len(outcomes):
                    status = 1
            counted = turns[FIRST_STARTS:]
            if counted:
                ratios = [
                    statistics.median(each.wall_s for each in sliced) / statistics.median(each.wall_s for each in plain)
                    for plain, sliced in counted
                    if plain
                ]
                print(f"{mode} wall in a slice / plain, {len(ratios)} turns: {range_of(ratios, 3)}")
            if failure:
                print(f"{mode}: {failure}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
