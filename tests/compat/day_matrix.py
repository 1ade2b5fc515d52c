"""Runs the things of a day in each kind of run, many at a time, and says of each whether it did what it does plain.

The phases of a mode: plain; then with a gpuctld each, in a slice with nothing set, below a max, and beside a reserve of
another slice with a busy program in it. What is other than plain there is run plain again, beside the same: where that
differs too, nothing is judged. Programs that would reach others under MPS go through all phases after the others.
"""

import contextlib
import dataclasses
import pathlib
import subprocess
import threading
import time

from compare import SKIP_STATUS, difference
from matrix import MORE_S, NO_TIME, RIGHT, SKIPPED, UNSOUND, WRONG, Cell, Matrix, Row

PLAIN, SLICE, MAX, RESERVE = "plain", "slice", "max", "reserve"
KINDS = (SLICE, MAX, RESERVE)
PLAIN_LIMIT_S = 150  # frameworks take long to import and to compile
TOGETHER_SHARE = 0.7  # of the time of a mode, where there are programs that go by themselves too
ALONE_JOBS = 2  # time-sliced
PLAIN_AGAIN = 2
KEPT_SMS, SOFTWARE_KEPT_SMS = 16, 2
BUSY = ("work", "--blocks", 1056, "--calibrate-us", 1000, "--depth", 4, "--check", "none", "--seconds", 36000)
SOFTWARE_BUSY = ("work", "--blocks", 8, "--iterations", 10, "--check", "none", "--seconds", 36000)
BUSY_LIMIT_S = 7200
BUSY_PAUSE_S = 0.5
ATTACHED = "attached to slice"  # in the library's trace
OUTSIDE = "day: in the slice were fewer of its processes than use the GPU"
# What differs from run to run on stderr and is none of the program's doing: addresses, times, processes, durations,
# places of temporary files.
NOISE = (
    r"0x[0-9a-fA-F]+"
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+"
    r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
    r"|\b(?:pid|PID|tid|Process|process|Thread|thread)[ =:#\[(-]*\d+"
    r"|/tmp/[^\s'\":,)]*"
    r"|\b\d+(?:\.\d+)? ?(?:ns|us|ms|s|sec|seconds|it/s|s/it|[KMG]i?B|bytes)\b"
)


class DayCell(Cell):
    """A program of day/."""

    turn = ""

    def unsound(self, first, _):
        if first.ended != "by itself":
            return f"plain: {first.status_text()}"
        if first.status != 0 and not self.program.at_fault:
            last = (first.err.strip() or first.out.strip() or "nothing said").splitlines()[-1]
            return f"plain: {first.status_text()}: {last[:160]}"
        return None if first.out.strip() else f"plain: {first.status_text()}, and printed nothing"

    def difference(self, plain, outcome):
        return difference(plain, outcome, self.program.unordered, self.program.ignore, NOISE)

    def told_of_fewer(self):
        """The same where it is told of fewer SMs than the GPU has."""
        patterns = [pattern for pattern in (self.program.ignore, self.program.told) if pattern]
        return dataclasses.replace(self, program=dataclasses.replace(self.program, ignore="|".join(patterns)))


class Busy:
    """A program in the slice `kept` that is started again whenever it ends, as under MPS it may by others' faults."""

    def __init__(self, lab):
        self.lab, self.over, self.starts, self.said = lab, threading.Event(), 0, ""
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.over.is_set():
            arguments = SOFTWARE_BUSY if self.lab.software else BUSY
            program = self.lab.start_bench("kept", *arguments, limit_s=BUSY_LIMIT_S)
            self.starts += 1
            while program.process.poll() is None and not self.over.is_set():
                self.over.wait(BUSY_PAUSE_S)
            if not self.over.is_set():
                self.said = program.err()
                self.over.wait(BUSY_PAUSE_S)
            program.kill()

    def __enter__(self):
        self.thread.start()
        self.lab.wait_for(lambda: (self.lab.usage("kept") or {}).get("launches"), "the busy program to launch")
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def attached(log):
    """How often those that wrote this trace came into a slice."""
    try:
        return pathlib.Path(log).read_text(encoding="utf-8", errors="replace").count(ATTACHED)
    except OSError:
        return 0


class DayMatrix(Matrix):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.turns = {cell.turn: threading.Lock() for cell in self.cells if cell.turn}

    def run_mode(self, mode, kinds):
        together = [cell for cell in self.cells if cell.program.name not in self.alone]
        alone = [cell for cell in self.cells if cell.program.name in self.alone]
        alone.sort(key=lambda cell: cell.program.is_python)  # if time is short, what is quick is there
        with self.lab.mode(mode):
            whole = self.deadline
            for cells, jobs in ((together, self.jobs), (alone, 1 if self.lab.mps else min(self.jobs, ALONE_JOBS))):
                if cells:
                    self.deadline = whole.share(TOGETHER_SHARE) if cells is together and alone else whole
                    self.run_phases(mode, kinds, cells, jobs)

    def run_phases(self, mode, kinds, cells, jobs):
        plain = self.plain_phase(mode, cells, jobs)
        cells = [cell for cell in cells if cell in plain]
        for kind in kinds if cells else ():
            with self.conditions(kind):
                self.phase(mode, kind, cells, lambda cell, kind=kind: self.judge(mode, kind, cell, plain[cell]), jobs)

    def phase(self, mode, kind, cells, do, jobs):
        began, before = time.monotonic(), len(self.rows)
        super().phase(mode, kind, cells, do, jobs)
        rows = self.rows[before:]
        for row in rows:
            if row.verdict == WRONG:
                print(f"WRONG {row.mode} {row.run} {row.program}: {row.note}", flush=True)
        counts = ", ".join(
            f"{sum(row.verdict == verdict for row in rows)} {name}"
            for verdict, name in (
                (RIGHT, "as plain" if kind != PLAIN else "well"),
                (WRONG, "wrong"),
                (UNSOUND, "unsound"),
            )
        )
        print(
            f"{mode} {kind}: {counts} of {len(cells)}, {time.monotonic() - began:.0f} s, {jobs} at a time", flush=True
        )

    def plain_phase(self, mode, cells, jobs):
        """The plain outcome of each cell that can be judged."""
        outcomes = {}

        def once(cell):
            outcome = self.execute(mode, PLAIN, cell, PLAIN_LIMIT_S)
            row = Row(mode, PLAIN, cell.name, cell.build, RIGHT, wall_s=outcome.wall_s)
            if outcome.ended == NO_TIME:
                row.verdict, row.note = SKIPPED, NO_TIME
            elif outcome.status == SKIP_STATUS:
                row.verdict, row.note = (
                    SKIPPED,
                    (outcome.err.strip() or outcome.out.strip() or "says so").splitlines()[-1],
                )
            elif reason := cell.unsound(outcome, outcome):
                row.verdict, row.note = UNSOUND, reason
                self.keep(mode, cell, outcome)
            else:
                with self.lock:
                    outcomes[cell] = outcome
            return row

        self.phase(mode, PLAIN, cells, once, jobs)
        return outcomes

    def execute(self, mode, kind, cell, limit_s, log=None):
        """What escapes from its slice does all that it does plain, and is not right. An exec is as another process."""
        with self.turns[cell.turn] if cell.turn else contextlib.nullcontext():
            outcome = super().execute(mode, kind, cell, limit_s, log)
        if log and outcome.ended == "by itself" and attached(log) < cell.program.attached:
            return dataclasses.replace(outcome, err=f"{outcome.err.rstrip()}\n{OUTSIDE}\n")
        return outcome

    def keep(self, mode, cell, outcome, number=""):
        for kind, text in (("out", outcome.out), ("err", outcome.err)):
            (self.kept / f"{mode}.{PLAIN}{number}.{cell.id}.{kind}").write_text(text, encoding="utf-8")

    def judge(self, mode, kind, cell, plain):
        if kind != SLICE:
            cell = cell.told_of_fewer()
        row = self.compare(mode, kind, cell, plain, plain)
        if row.verdict == WRONG:
            self.keep(mode, cell, plain)
            self.hold_against_plain(row, mode, kind, cell, plain)
        return row

    def hold_against_plain(self, row, mode, kind, cell, plain):
        """Nothing is judged where plain runs differ among themselves too, beside what was there just now."""
        for number in range(1, PLAIN_AGAIN + 1):
            again = self.execute(mode, PLAIN, cell, 3 * plain.wall_s + MORE_S)
            if again.ended == NO_TIME:
                return
            if apart := cell.difference(plain, again):
                self.keep(mode, cell, again, f"-again-{kind}-{number}")
                row.verdict, row.note = UNSOUND, f"plain runs differ: {apart}; in the slice: {row.note}"
                return

    @contextlib.contextmanager
    def conditions(self, kind):
        """A gpuctld with the slice s, and what this kind of run has."""
        with self.lab.serving():
            if kind == MAX:
                self.lab.gpuctl("set", "s", f"max={max(1, self.lab.sms() // 2)}")
            if kind != RESERVE:
                yield
                return
            sms = SOFTWARE_KEPT_SMS if self.lab.software else KEPT_SMS
            self.lab.gpuctl("create-slice", "kept", "--reserve", sms)
            with Busy(self.lab) as busy:
                yield
            if busy.starts > 1:
                print(f"the busy program was started {busy.starts} times; last it said: {busy.said}", flush=True)

    def gone_wrong(self, mode, error):
        """The rest of a mode was lost with its daemon or its MPS."""
        note = " ".join(str(error).split())
        print(f"WRONG {mode}: {note}", flush=True)
        self.rows.append(Row(mode, "", "the runner", "-", WRONG, note))

    def all_modes(self, modes, kinds, deadline):
        """Each mode has an equal share of the time that is left."""
        for number, mode in enumerate(modes):
            self.deadline = deadline.share(1 / (len(modes) - number))
            try:
                self.run_mode(mode, kinds)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                self.gone_wrong(mode, error)
            self.lab.leave()
