"""The papers' experiments within a time: python3 -m bench.papers --build DIR --out DIR [--all | NAME...]

All sides of an experiment are started by turns, so often as --starts says or the time allows; one round is all of them.
Rows have means with 95 % intervals over the starts. OUT/papers.txt has the table, and below it what each start came to.
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from ..lab.modes import LabOfModes, gpus
from ..measure import Table, heading
from .experiments import EXPERIMENTS, MODES, NotHere, Programs
from .sides import entered, serving

SIDE_S = 10  # a first guess


class Run:
    def __init__(self, lab, programs, names, options, table):
        self.lab, self.programs, self.table = lab, programs, table
        self.experiments = [EXPERIMENTS[name](lab, programs) for name in names]
        self.starts = options.starts
        self.end = time.monotonic() + options.seconds
        self.found = {one: {} for one in self.experiments}  # by row's side, then by the number of the start
        self.took = {}
        self.failed = False

    def rows(self, rows):
        for figure, target, measured in rows:
            self.lab.record(row=[figure, target, measured])
            self.table.add(f"{figure:<86} {target:<18} {measured}")

    def prepare(self):
        with entered(self.lab, MODES[0]):
            for one in list(self.experiments):
                try:
                    self.rows(one.prepare())
                except NotHere as reason:
                    self.table.add(f"{one.name}: NOT RUN: {reason}")
                    self.experiments.remove(one)
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    self.fail(one, "alone", error)
                    self.experiments.remove(one)
            self.lab.leave()

    def play(self):
        rng = random.Random(1)
        for number in range(self.starts):
            for mode in MODES:
                todo = [(one, side) for one in self.experiments for side in one.sides if side.mode == mode]
                rng.shuffle(todo)
                if todo and self.time_for(*todo[0]):
                    with entered(self.lab, mode):
                        for one, side in todo:
                            self.play_one(one, side, number)

    def time_for(self, one, side):
        return time.monotonic() + self.took.get((one.name, side.name), SIDE_S) < self.end

    def play_one(self, one, side, number):
        if not self.time_for(one, side):
            return
        began = time.monotonic()
        one.number, self.programs.side, self.programs.checks = number, side, number == 0
        try:
            with serving(self.lab, side):
                for name, what in one.play(side).items():
                    self.found[one].setdefault(name, {})[number] = what
                    self.lab.record(experiment=one.name, side=name, start=number, found=what)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
            self.fail(one, side.name, error)
        finally:
            self.programs.side = None
            self.lab.leave()
        took = time.monotonic() - began
        self.took[one.name, side.name] = max(took, self.took.get((one.name, side.name), 0))
        print(f"{one.name}, {side.name}, start {number}: {took:.1f} s", file=sys.stderr)

    def fail(self, one, side, error):
        self.failed = True
        self.lab.record(failed=str(error), experiment=one.name, side=side)
        self.table.add(f"{one.name}, {side}: FAILED: {str(error)[:300]}")

    def report(self):
        for one in self.experiments:
            self.rows(one.rows(dict(sorted(self.found[one].items()))))
        programs = self.programs
        self.rows([("wrong results", "0", f"{programs.wrong} of {programs.checked} that were checked")])
        for one in self.experiments:
            for name, starts in self.found[one].items():
                for number, what in starts.items():
                    self.table.add(f"# {one.name}, {name}, start {number}: {compact(what)}")


def compact(what):
    return json.dumps(json.loads(json.dumps(what), parse_float=lambda text: float(f"{float(text):.5g}")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", required=True)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3000, help="no start begins that would end later")
    parser.add_argument("--software", action="store_true", help="small sizes on the software GPU: figures mean nothing")
    options = parser.parse_args()
    names = list(EXPERIMENTS) if options.all else options.names
    if not names or set(names) - set(EXPERIMENTS):
        parser.error(f"name some of {', '.join(EXPERIMENTS)}, or --all")
    if not options.software and gpus() is None:
        sys.exit("papers: no GPU here (nvidia-smi); --software takes the software GPU")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = pathlib.Path(options.out)
    with tempfile.TemporaryDirectory(prefix="papers.") as scratch:
        lab = LabOfModes(options.build, out, pathlib.Path(scratch), options.software)
        try:
            with entered(lab, MODES[0]):
                table = Table(out / "papers.txt", heading(lab))
                lab.leave()
            run = Run(lab, Programs(lab), names, options, table)
            run.prepare()
            run.play()
            run.report()
        finally:
            lab.leave()
    sys.exit(1 if run.failed else 0)


if __name__ == "__main__":
    main()
