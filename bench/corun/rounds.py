"""The runs of the matrix, in order. A cell is an LS program and a batch program in all configurations. The order is

    for each cell: for each round: for each configuration: start the programs, one round, end them

or, with --quick, for each cell: for each configuration: start the programs, all rounds, end them. A cell is begun only
if there is time for a run; runs that did not happen are listed as missing, with the reason. Each program is also
measured alone, once in each round for all the cells that it is in.
"""

import subprocess
import time

from .configurations import ALONE
from .stage import Refused

START_S = {True: 3.0, False: 20.0}  # a first guess by whether all programs are synthetic
PRIME_S = 1.0


def by_start(options):
    """The numbers of the rounds that are played in one start of the programs, for each start."""
    return [range(options.rounds)] if options.quick else [[number] for number in range(options.rounds)]


class Rounds:
    def __init__(self, stage, results, options, sizes, say):
        self.stage, self.results, self.options, self.sizes, self.say = stage, results, options, sizes, say
        self.end = time.monotonic() + options.limit_s
        self.took = dict(START_S)
        self.primed = set()
        self.refused = {}

    def left_s(self):
        return self.end - time.monotonic()

    def run(self, cells, configurations):
        for ls, batch in cells:
            self.prime(ls, batch)
            for numbers in by_start(self.options):
                for configuration in configurations:
                    if configuration.kind == ALONE:
                        self.run_one(ls, None, configuration, numbers)
                        self.run_one(None, batch, configuration, numbers)
                    else:
                        self.run_one(ls, batch, configuration, numbers)
                self.results.save()

    def run_one(self, ls, batch, configuration, numbers):
        """Runs rounds of a pair in one start of its programs. An error is noted, and the next run follows."""
        numbers = [number for number in numbers if not self.results.has(ls, batch, configuration, number)]
        if not numbers:
            return
        if configuration.name in self.refused:
            return self.results.miss(ls, batch, configuration, numbers, self.refused[configuration.name], refused=True)
        synthetic = all(workload is None or workload.synthetic for workload in (ls, batch))
        expected = self.took[synthetic] + len(numbers) * (self.options.settle + self.options.seconds)
        if self.left_s() < expected:
            return self.results.miss(ls, batch, configuration, numbers, "no time left")
        began, done = time.monotonic(), 0
        try:
            for number, reports, usage in self.play(ls, batch, configuration, numbers):
                self.results.add(ls, batch, configuration, number, reports, usage)
                done += 1
            self.took[synthetic] = max(
                1.0, time.monotonic() - began - len(numbers) * (self.options.settle + self.options.seconds)
            )
        except Refused as refusal:
            self.refused[configuration.name] = str(refusal)
            self.results.miss(ls, batch, configuration, numbers, str(refusal), refused=True)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as failure:
            self.results.miss(ls, batch, configuration, numbers[done:], f"{type(failure).__name__}: {failure}"[:2000])
        self.say(ls, batch, configuration, numbers, time.monotonic() - began)

    def play(self, ls, batch, configuration, numbers):
        reserve = ls.reserve if ls else 0
        with self.stage.configured(configuration, reserve) as (ls_slice, batch_slice):
            wanted = [(ls_slice, configuration.ls_env, self.command(ls, configuration.ls_priority))] if ls else []
            wanted += (
                [(batch_slice, configuration.batch_env, self.command(batch, "none"))] * batch.copies if batch else []
            )
            with self.stage.programs(wanted, max(self.left_s(), 1)) as members:
                for number in numbers:
                    reports = self.stage.play(members, self.options.settle, self.options.seconds, 1 + 100 * number)
                    yield number, reports, self.stage.usage()

    def command(self, workload, priority):
        return workload.command(self.stage.corun_kernels, self.sizes.get(workload.name), priority, self.stage.software)

    def prime(self, ls, batch):
        """Runs programs once, unmeasured, so that later starts find in the cache what the library compiles at a first
        start.
        """
        fresh = {workload.name for workload in (ls, batch)} - self.primed
        configuration = self.options.primed_in
        if not fresh or configuration is None or self.left_s() < 30:
            return
        self.primed |= fresh
        try:
            with self.stage.configured(configuration, ls.reserve) as slices:
                wanted = [
                    (slice_path, (), self.command(workload, "none"))
                    for slice_path, workload in zip(slices, (ls, batch))
                ]
                with self.stage.programs(wanted, self.left_s()) as members:
                    self.stage.play(members, 0, PRIME_S, 1)
        except (Refused, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as failure:
            self.results.note(f"priming {ls.name} and {batch.name}: {failure}"[:2000])
