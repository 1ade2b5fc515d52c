"""Runs programs x builds in each kind of run, many at a time, and says of each whether it did what it does plain.

The phases of a mode: plain, twice; then with a gpuctld the first start with empty caches and another with full ones;
then, with one that storms, one and two at once. What met errors as one of two is held against plain runs of two at
once: it is unsound if those meet the same errors. Programs that would reach others under MPS go through them after all
others. What a hang or crash of another program reached under MPS all the same is run again once, and the table says so.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import shutil
import sys
import threading
import time

from accidents import Accident, is_accident, was_reached
from compare import SKIP_STATUS, difference, is_sticky, signature, unsound
from execute import run
from head import PYTHON_BUILD, Program
from lab import MPS

COLD, WARM, STORM, PAIR = RUNS = ("slice-cold", "slice", "storm", "storm-pair")
PLAIN_LIMIT_S = 30
PLAIN_PAIRS = 6  # of a program that was wrong as one of two
PYTHON_LIMIT_S = 150  # frameworks take long to import
MORE_S = 20  # what a run may take longer than three times the plain one
QUIET_S, QUIET_LIMIT_S = 1.0, 10.0
RIGHT, WRONG, UNSOUND, SKIPPED = "right", "wrong", "unsound", "skipped"
NO_TIME = "no time left"
LOG_LINES = 3
FIRST_BUILDS = ("both", "ptx", PYTHON_BUILD)
ALONE_JOBS = 4
ALONE_NOTE = "a program that may reach others, in a build that --alone-builds does not name"
# Where a program, or a front end, keeps things from start to start.
KEPT = ("XDG_CACHE_HOME", "CUDA_CACHE_PATH")
KEPT_BY_PYTHON = (
    "TRITON_CACHE_DIR",
    "CUPY_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "PYTORCH_KERNEL_CACHE_PATH",
    "TORCHINDUCTOR_CACHE_DIR",
)


@dataclasses.dataclass(frozen=True)
class Cell:
    program: Program
    variant: int  # which of its arguments
    build: str
    path: pathlib.Path

    @property
    def arguments(self):
        return self.program.variants[self.variant]

    @property
    def name(self):
        return " ".join((self.program.name, *self.arguments))

    @property
    def id(self):
        return f"{self.program.name}.{self.variant}.{self.build}"

    @property
    def command(self):
        start = [sys.executable, str(self.path)] if self.build == PYTHON_BUILD else [str(self.path)]
        return [*start, *self.arguments]

    def sliced(self, in_slice):
        """The command for a slice; `in_slice` makes one of any command."""
        return in_slice(self.command)

    def unsound(self, first, second):
        return unsound(self.program, first, second)

    def difference(self, plain, outcome):
        return difference(plain, outcome, self.program.unordered, self.program.ignore)


@dataclasses.dataclass
class Row:
    """What became of one cell in one kind of run."""

    mode: str
    run: str
    program: str
    build: str
    verdict: str
    note: str = ""
    wall_s: float = 0
    plain_s: float = 0
    reached: str = ""  # what it did first, when a hang or crash of another program reached it: this is of a second time


class Matrix:
    def __init__(self, lab, cells, jobs, deadline, kept, alone_builds=FIRST_BUILDS):
        self.lab, self.cells, self.jobs, self.deadline = lab, cells, jobs, deadline
        self.alone_builds = alone_builds
        self.kept = pathlib.Path(kept)  # what failing runs left
        self.rows = []
        self.alone = {cell.program.name for cell in cells if cell.program.at_fault}
        self.state = "starting"
        self.lock, self.mending = threading.Lock(), threading.Lock()
        self.ran, self.accidents = {}, []  # the outcomes of each cell in the phase, and what happened under MPS

    def run_mode(self, mode, runs):
        """What says most goes through all phases first; what is skipped for want of time is what says least. The other
        builds go one after the other, so that all runs of those for which there is time are there."""
        with self.lab.mode(mode):
            others = sorted({cell.build for cell in self.cells} - set(FIRST_BUILDS))
            for builds in (FIRST_BUILDS, *([build] for build in others)):
                together = [cell for cell in self.cells if cell.program.name not in self.alone and cell.build in builds]
                if together:
                    self.run_phases(mode, runs, together, self.jobs)
            alone = [cell for cell in self.cells if cell.program.name in self.alone]
            self.rows += [
                Row(mode, "plain", cell.name, cell.build, SKIPPED, ALONE_NOTE)
                for cell in alone
                if cell.build not in self.alone_builds
            ]
            # Without MPS a fault stays where it is.
            self.run_phases(
                mode,
                runs,
                [cell for cell in alone if cell.build in self.alone_builds],
                1 if self.lab.mps else min(self.jobs, ALONE_JOBS),
            )

    def run_phases(self, mode, runs, cells, jobs):
        before = set(self.alone)
        plain = self.plain_phase(mode, cells, jobs)
        # Those that turned out to reach others begin again with the others of that kind.
        deferred = {cell.name for cell in cells if cell.program.name in self.alone - before}
        self.rows = [row for row in self.rows if (row.mode, row.run) != (mode, "plain") or row.program not in deferred]
        cells = [cell for cell in cells if cell in plain and cell.name not in deferred]
        for storm in (False, True):
            wanted = [kind for kind in runs if (kind in (STORM, PAIR)) == storm]
            if wanted and cells:
                with self.lab.serving(storm):
                    for kind in wanted:
                        self.phase(
                            mode,
                            kind,
                            cells,
                            lambda cell, kind=kind: self.compare(mode, kind, cell, *plain[cell]),
                            jobs,
                        )
                        if kind == PAIR:
                            self.hold_against_plain_pairs(mode, plain)
                        if kind == COLD:
                            self.wait_until_compiled(mode)

    def note_alone(self, outcomes):
        self.alone |= {cell.program.name for cell, outcome in outcomes.items() if is_sticky(outcome)}

    def plain_phase(self, mode, cells, jobs):
        """Two plain outcomes of each cell that is sound."""
        outcomes = {}

        def twice(cell):
            limit_s = PYTHON_LIMIT_S if cell.program.is_python else PLAIN_LIMIT_S
            first, second = (self.execute(mode, "plain", cell, limit_s) for _ in range(2))
            row = Row(mode, "plain", cell.name, cell.build, RIGHT, wall_s=second.wall_s, plain_s=first.wall_s)
            if NO_TIME in (first.ended, second.ended):
                row.verdict, row.note = SKIPPED, NO_TIME
            elif first.status == SKIP_STATUS:
                row.verdict, row.note = (
                    SKIPPED,
                    (first.err.strip() or first.out.strip() or "says so itself").splitlines()[-1],
                )
            elif reason := cell.unsound(first, second):
                row.verdict, row.note = UNSOUND, reason
            else:
                with self.lock:
                    outcomes[cell] = (first, second)
            return row

        self.phase(mode, "plain", cells, twice, jobs)
        self.note_alone({cell: second for cell, (_, second) in outcomes.items()})
        return outcomes

    def phase(self, mode, kind, cells, do, jobs):
        """Adds a row for each cell: what do(cell) says or, when there is no time, that it was skipped."""
        done, began, rows = [0], time.monotonic(), {}
        self.ran.clear()

        def one(cell):
            row = Row(mode, kind, cell.name, cell.build, SKIPPED, NO_TIME) if self.deadline.passed() else do(cell)
            with self.lock:
                if row:
                    rows[cell] = row
                    self.rows.append(row)
                done[0] += 1
                wrong = sum(row.verdict == WRONG for row in self.rows)
                self.state = (
                    f"{mode} {kind}: {done[0]} of {len(cells)}, {time.monotonic() - began:.0f} s; {wrong} wrong so far"
                )

        self.each(one, cells, jobs)
        reached = [
            cell
            for cell in cells
            if cell in rows
            and rows[cell].verdict in (WRONG, UNSOUND)
            and was_reached(self.ran.get(cell, []), self.accidents)
        ]
        self.each(lambda cell: self.run_again(rows[cell], cell, do), reached, jobs)
        if kind != "plain" and (failure := self.lab.daemon_failure()):
            self.rows.append(Row(mode, kind, "gpuctld", "-", WRONG, failure))

    @staticmethod
    def each(do, cells, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for future in [pool.submit(do, cell) for cell in cells]:
                future.result()

    def run_again(self, row, cell, do):
        """Once, after another's accident. When there is no time left, what it did first stays."""
        if self.deadline.passed():
            return
        again = do(cell)
        if again.verdict != SKIPPED:
            again.reached = row.note
            with self.lock:
                self.rows[next(i for i, other in enumerate(self.rows) if other is row)] = again

    def compare(self, mode, kind, cell, first, second):
        plain = first if kind == COLD else second
        row = Row(mode, kind, cell.name, cell.build, RIGHT, plain_s=plain.wall_s)
        if kind == PAIR and mode == MPS and cell.program.name in self.alone:
            row.verdict, row.note = SKIPPED, "under MPS one of the two reaches the other"
            return row
        limit_s = 3 * plain.wall_s + MORE_S
        logs = [self.kept / f"{mode}.{kind}.{cell.id}.{number}.log" for number in range(2 if kind == PAIR else 1)]
        with concurrent.futures.ThreadPoolExecutor(len(logs)) as pool:
            outcomes = list(pool.map(lambda log: self.execute(mode, kind, cell, limit_s, log), logs))
        row.wall_s = max(outcome.wall_s for outcome in outcomes)
        notes = []
        for outcome, log in zip(outcomes, logs):
            apart = cell.difference(plain, outcome)
            if outcome.ended == NO_TIME:
                row.verdict, row.note = SKIPPED, NO_TIME
            elif apart:
                notes.append(
                    apart + (f"; last in its log: {' | '.join(tail(log))}" if outcome.ended == "timeout" else "")
                )
                log.with_suffix(".out").write_text(outcome.out, encoding="utf-8")
                log.with_suffix(".err").write_text(outcome.err, encoding="utf-8")
                continue
            log.unlink(missing_ok=True)
        if notes:
            row.verdict, row.note = WRONG, " AND ".join(notes)
        return row

    def hold_against_plain_pairs(self, mode, plain):
        """The wrong pairs of the phase that is over, one by one: unsound where plain pairs meet all that they met."""
        for row in [row for row in self.rows if (row.mode, row.run, row.verdict) == (mode, PAIR, WRONG)]:
            cell = next((cell for cell in plain if (cell.name, cell.build) == (row.program, row.build)), None)
            if cell is None or NO_TIME in (outcome.ended for outcome in self.ran[cell]):
                continue
            usual = plain[cell][1]
            met = {signature(outcome) for outcome in self.ran[cell][-2:] if cell.difference(usual, outcome)}
            if signature(usual) in met:  # a result is wrong, and no error says so
                continue
            apart, pairs = 0, 0
            while met and pairs < PLAIN_PAIRS and not self.deadline.passed():
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    limit_s = 3 * usual.wall_s + MORE_S
                    both = list(pool.map(lambda _: self.execute(mode, "plain", cell, limit_s), range(2)))
                pairs += 1
                apart += any(signature(outcome) != signature(usual) for outcome in both)
                met -= {signature(outcome) for outcome in both}
            if not met:
                row.verdict = UNSOUND
                row.note = f"{apart} of {pairs} plain pairs are wrong in the same way: {row.note}"

    def execute(self, mode, kind, cell, limit_s, log=None):
        """One run; after one that may have reached others, MPS is seen to again."""
        caches = self.caches(mode, "slice" if log else "plain", cell)
        env = {**self.lab.env, **caches, "PYTHONDONTWRITEBYTECODE": "1"}
        if log:
            log.unlink(missing_ok=True)
            env["GPUSLICE_DEBUG"] = str(log)
        with self.mending:
            pass  # nothing is started while MPS does not serve
        outcome = run(
            cell.sliced(self.lab.in_slice) if log else cell.command,
            env,
            limit_s,
            self.deadline,
            self.lab.scratch,
            self.lab.end_in_slice if log else None,
            cell.program.signalled,
        )
        with self.lock:
            self.ran.setdefault(cell, []).append(outcome)
        accident = is_accident(outcome)
        if self.lab.mps and (accident or cell.program.name in self.alone or is_sticky(outcome)):
            with self.mending:
                self.lab.mps.mend(probe=accident)
            if accident:
                with self.lock:
                    self.accidents.append(Accident(outcome.began, time.monotonic()))
        return outcome

    def caches(self, mode, side, cell):
        root = self.lab.scratch / "kept" / mode / side / cell.id
        directories = {
            name: str(root / name.lower()) for name in KEPT + (KEPT_BY_PYTHON if cell.program.is_python else ())
        }
        for directory in directories.values():
            os.makedirs(directory, mode=0o700, exist_ok=True)
        return directories

    def wait_until_compiled(self, mode):
        """Until what was compiled beside the programs is there: no new machine code for a second."""
        began, changed, count = time.monotonic(), time.monotonic(), -1
        while (now := time.monotonic()) - changed < QUIET_S and now - began < QUIET_LIMIT_S:
            there = sum(
                1 for _ in (self.lab.scratch / "kept" / mode / "slice").glob("*/xdg_cache_home/gpuctl/*.compiled")
            )
            if there != count:
                count, changed = there, now
            time.sleep(0.1)

    @contextlib.contextmanager
    def progress(self, every_s=5):
        """Says on stderr how far it is."""
        over = threading.Event()

        def tell():
            while not over.wait(every_s):
                print(self.state, file=sys.stderr, flush=True)

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def tail(log):
    with contextlib.suppress(OSError):
        return [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]]
    return []


def empty(directory):
    """Makes the directory of what failing runs leave, without that of earlier ones."""
    shutil.rmtree(directory, ignore_errors=True)
    pathlib.Path(directory).mkdir(parents=True)
    return pathlib.Path(directory)
