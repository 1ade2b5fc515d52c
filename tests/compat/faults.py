#!/usr/bin/env python3
"""Runs each kind of fault many times, plain and in a slice, beside a neighbour that is started again and again. A kind
is a program and its first argument; its runs are shared among the ways in which the program goes on and ends.

In a slice a fault must look as it does plain: the same status and output, and the end at most 100 ms after the plain
median. A neighbour that starts afterwards must be right; one that was there is right too where programs are
time-sliced, and under MPS gets what one gets plain. gpuctld must live and hold nothing of the program. Exit status 0 if
all of that was so."""

import argparse
import collections
import concurrent.futures
import itertools
import re
import statistics
import sys
import threading
import time

from compare import difference, signature
from head import is_chosen
from lab import MPS, TIME_SLICED
from single import SHORT, Session, parser
from table import aligned

LATER_S = 0.1
FREE_S = 1.0  # within which a daemon that is well has noticed the end of a program
PLAIN_RUNS = 6
PLAIN_SHARE = 0.3  # of the time
NEIGHBOUR_ROUNDS = "40"


class Neighbour(threading.Thread):
    """Starts the short program again and again."""

    def __init__(self, session, path, in_slice):
        super().__init__(daemon=True)
        self.session, self.command, self.in_slice = session, [str(path), NEIGHBOUR_ROUNDS], in_slice
        self.over, self.outcomes = threading.Event(), []

    def run(self):
        while not self.over.is_set():
            self.outcomes.append(self.session.run(self.command, self.in_slice))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        """One more starts after the last fault."""
        seen = len(self.outcomes)
        deadline = time.monotonic() + 120
        while len(self.outcomes) < seen + 2 and self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.over.set()
        self.join()


def is_beside(outcome, faults):
    """Whether a neighbour was there while a fault was (its beginning, and when the GPU was well again)."""
    return any(outcome.began <= end and outcome.began + outcome.wall_s >= begin for begin, end in faults)


def neighbours(outcomes, faults, right, allowed):
    """How many were right, met what a plain neighbour may meet beside a fault, or neither; and what the latter met."""
    counts, wrong = collections.Counter(), []
    for outcome in outcomes:
        if difference(right, outcome) is None:
            counts["right"] += 1
        elif is_beside(outcome, faults) and signature(outcome) in allowed:
            counts["reached, as plain"] += 1
        else:
            counts["wrong"] += 1
            wrong.append(f"{'beside a fault' if is_beside(outcome, faults) else 'alone'}: {difference(right, outcome)}")
    return counts, wrong


def timed(outcomes):
    """The first one fills the caches."""
    return outcomes[1:] or outcomes


def chosen_variants(program, patterns):
    """Those arguments of the program that the patterns choose, by its name or by its name and its arguments."""
    return [
        arguments
        for arguments in program.variants
        if is_chosen(program.name, patterns) or is_chosen(" ".join((program.name, *arguments)), patterns)
    ]


def kinds(programs, part, patterns="*"):
    """[[(program, path, arguments) of each chosen variant of a kind]], every n-th kind from the first-th on."""
    found = collections.defaultdict(list)
    for program, path in programs:
        for arguments in chosen_variants(program, patterns):
            found[program.name, *arguments[:1]].append((program, path, arguments))
    first, n = part
    return list(found.values())[first - 1 :: n]


def tries(kind, number):
    """Each variant of a kind once, to fill the caches, and then so many runs of the kind."""
    return kind + [kind[i % len(kind)] for i in range(number)]


def part_of(text):
    """ArgumentTypeError: it is not I/N with I of 1 to N."""
    matched = re.fullmatch(r"(\d+)/(\d+)", text)
    if not matched or not 1 <= int(matched[1]) <= int(matched[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: not I/N with I of 1 to N")
    return int(matched[1]), int(matched[2])


class Side:
    """All kinds of faults so many times, plain or in a slice."""

    def __init__(self, session, mode, in_slice):
        self.session, self.in_slice = session, in_slice
        self.at_once = 1 if mode == MPS else session.options.at_once
        self.outcomes = collections.defaultdict(list)
        self.faults, self.not_free, self.free_s = [], [], 0.0
        self.lock = threading.Lock()

    def run(self, kinds_of_fault, short, number):
        """By turns, so that each kind has had some runs if time is short."""
        turns = itertools.zip_longest(*(tries(kind, number) for kind in kinds_of_fault))
        tasks = [task for turn in turns for task in turn if task]
        with (
            Neighbour(self.session, short, self.in_slice) as neighbour,
            concurrent.futures.ThreadPoolExecutor(self.at_once) as pool,
        ):
            for future in [pool.submit(self.one, *task) for task in tasks]:
                future.result()
        self.neighbours = neighbour.outcomes

    def one(self, program, path, arguments):
        if self.session.deadline.passed():
            return
        outcome = self.session.run([str(path), *arguments], self.in_slice)
        freed = self.wait_free(outcome.pid) if self.in_slice else None
        if self.session.lab.mps:
            self.session.lab.mps.mend()
        with self.lock:
            self.outcomes[" ".join((program.name, *arguments))].append(outcome)
            self.faults.append((outcome.began, time.monotonic()))
            if freed:
                self.not_free.append(f"{program.name}: {freed}")

    def wait_free(self, pid):
        """Why something of the program is still there, or None."""
        began = time.monotonic()
        while True:
            with self.lock:
                if failure := self.session.lab.daemon.process.poll():
                    return f"gpuctld ended with status {failure}"
                there = [
                    client for client in self.session.lab.call("GetSlice", path="s")["clients"] if client["pid"] == pid
                ]
            if not there:
                with self.lock:
                    self.free_s = max(self.free_s, time.monotonic() - began)
                return None
            if time.monotonic() - began > FREE_S:
                return f"still a client {FREE_S:.0f} s after its end: {there[0]['state']}"
            time.sleep(0.005)


def in_mode(session, mode, faults, short, number, as_often_plain=False):
    """The lines to print, and whether all was well."""
    with session.lab.mode(mode):
        plain = Side(session, mode, False)
        right = session.run([str(short), NEIGHBOUR_ROUNDS], False)
        if right.status != 0:
            return [f"{mode}: the neighbour fails plain: {right.status_text()} {right.err.strip()}"], False
        whole, session.deadline = session.deadline, session.deadline.share(0.5 if as_often_plain else PLAIN_SHARE)
        plain.run(faults, short, number if as_often_plain else min(number, PLAIN_RUNS))
        session.deadline = whole
        with session.lab.serving():
            sliced = Side(session, mode, True)
            sliced.run(faults, short, number)
            failure = session.lab.daemon_failure()
    return summary(mode, plain, sliced, right, failure)


def summary(mode, plain, sliced, right, failure):
    table = [[mode, "plain", "in a slice", "same", "late", "late plain", "later by ms: median", "most"]]
    notes = collections.Counter()
    for name, outcomes in sliced.outcomes.items():
        reference = plain.outcomes.get(name, [])
        if not reference or any(difference(reference[0], other) for other in reference[1:]):
            table.append([f"{name} (unsound: plain runs differ)", str(len(reference)), str(len(outcomes)), *"-----"])
            continue
        median_s = statistics.median(outcome.wall_s for outcome in timed(reference))
        later = [outcome.wall_s - median_s for outcome in timed(outcomes)]
        apart = [found for found in (difference(reference[0], outcome) for outcome in outcomes) if found]
        late = sum(seconds > LATER_S for seconds in later)
        notes.update(f"{name}: {found}" for found in apart)
        if late:
            notes[
                f"{name}: ended more than {LATER_S * 1000:.0f} ms after the plain median of {median_s * 1000:.0f} ms"
            ] += late
        table.append(
            [
                name,
                str(len(reference)),
                str(len(outcomes)),
                str(len(outcomes) - len(apart)),
                str(late),
                str(sum(outcome.wall_s - median_s > LATER_S for outcome in timed(reference))),
                f"{statistics.median(later) * 1000:.1f}",
                f"{max(later) * 1000:.1f}",
            ]
        )
    allowed = (
        {signature(outcome) for outcome in plain.neighbours if is_beside(outcome, plain.faults)}
        if mode == MPS
        else set()
    )
    lines = aligned(table)
    for name, side in (("plain", plain), ("in a slice", sliced)):
        counts, wrong = neighbours(side.neighbours, side.faults, right, allowed)
        lines.append(
            f"neighbours {name}: "
            + ", ".join(f"{counts[kind]} {kind}" for kind in ("right", "reached, as plain", "wrong"))
        )
        if side is sliced:
            notes.update(f"neighbour {found}" for found in wrong)
    lines.append(f"clients were gone at most {sliced.free_s * 1000:.0f} ms after their end")
    notes.update(sliced.not_free)
    notes.update([failure] if failure else [])
    return lines + [f"  {count} x {note}" for note, count in notes.most_common()], bool(sliced.outcomes) and not notes


def main():
    options = parser(__doc__)
    options.add_argument(
        "number",
        type=int,
        nargs="?",
        default=100,
        help="runs of each kind in a slice, after first ones that fill the caches (default: 100)",
    )
    options.add_argument(
        "--part",
        type=part_of,
        default=(1, 1),
        metavar="I/N",
        help="every N-th kind from the I-th on, to run N of these side by side (default: 1/1)",
    )
    options.add_argument(
        "--only",
        default="*",
        metavar="PATTERN,...",
        help="names of programs, or names and arguments ('fault shared *'), as the shell matches them",
    )
    options.add_argument(
        "--as-often-plain",
        action="store_true",
        help=f"as many plain runs as in a slice, not {PLAIN_RUNS}: for an outcome that is rare",
    )
    options = options.parse_args()
    options.modes = options.modes or (TIME_SLICED, MPS)
    session = Session(options)
    status = 0
    with session.open():
        programs = session.programs(lambda program: program.at_fault and chosen_variants(program, options.only))
        short = session.programs(lambda program: program.name == SHORT)
        if not programs or not short:
            print("compat: no fault programs, or no short one", file=sys.stderr)
            return 77
        faults = kinds(programs, options.part, options.only)
        whole = session.deadline
        for mode in options.modes:
            session.deadline = whole if mode == options.modes[-1] else whole.share(0.5)
            lines, well = in_mode(session, mode, faults, short[0][1], options.number, options.as_often_plain)
            print("\n".join(lines), flush=True)
            status |= not well
    return status


if __name__ == "__main__":
    sys.exit(main())
