"""The runs of the matrix, in order. A cell is an LS program and a batch program in all configurations. The order is

    for each cell: for each round: for each configuration: start the programs, one round, end them

or, with --quick, for each cell: for each configuration: start the programs, all rounds, end them. With --live
configurations of gpuctl that differ in settings alone have one start for all: the settings change between rounds.

A cell is begun only if there is time for a run; runs that did not happen are listed as missing, with the reason. Each
program is also measured alone, once in each round for all the cells that it is in.
"""

import contextlib
import subprocess
import time

from .configurations import ALONE
from .stage import Refused

START_S = {True: 3.0, False: 20.0}  # a first guess by whether all programs are synthetic
PRIME_S = 1.0
LEARN_S = 10.0  # both, where gpuctld is to know what came of the first start
ALONE_S = 3.0  # LS by itself, where a configuration has a target of latency: what it takes alone is learnt there


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
                for alike in self.in_one_start(configurations):
                    if alike[0].kind == ALONE:
                        self.run_one(ls, None, alike[0], numbers)
                        self.run_one(None, batch, alike[0], numbers)
                    elif len(alike) > 1:
                        self.run_live(ls, batch, alike, numbers)
                    else:
                        self.run_one(ls, batch, alike[0], numbers)
                self.results.save()

    def in_one_start(self, configurations):
        """Lists of those that are measured in one start of the programs."""
        if not self.options.live:
            return [[configuration] for configuration in configurations]
        groups = {}
        for configuration in configurations:
            groups.setdefault(configuration.started_as(), []).append(configuration)
        return list(groups.values())

    def run_live(self, ls, batch, configurations, numbers):
        """Runs rounds of a pair in one start of its programs, in each round all configurations in another order."""
        began, done = time.monotonic(), set()
        pairs = [(number, each) for number in numbers for each in configurations]
        synthetic = all(workload.synthetic for workload in (ls, batch))
        try:
            if self.left_s() < self.took[synthetic] + len(pairs) * (self.options.settle + self.options.seconds):
                raise RuntimeError("no time left")
            with self.started(ls, batch, configurations[0]) as members:
                self.let_learn_alone(members, configurations)
                for place, (number, _) in enumerate(pairs):
                    configuration = configurations[(place + number) % len(configurations)]
                    self.stage.change(configuration, ls.reserve, configurations)
                    reports = self.stage.play(members, self.options.settle, self.options.seconds, 1 + 100 * number)
                    self.results.add(ls, batch, configuration, number, reports, self.stage.usage())
                    done.add((number, configuration.name))
        except (Refused, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as failure:
            for number, configuration in pairs:
                if (number, configuration.name) not in done:
                    self.results.miss(ls, batch, configuration, [number], f"{type(failure).__name__}: {failure}"[:2000])
        self.say(ls, batch, configurations[0], numbers, time.monotonic() - began)

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
        with self.started(ls, batch, configuration) as members:
            self.let_learn_alone(members, [configuration])
            for number in numbers:
                reports = self.stage.play(members, self.options.settle, self.options.seconds, 1 + 100 * number)
                yield number, reports, self.stage.usage()

    def let_learn_alone(self, members, configurations):
        if any("latency" in configuration.settings("ls") for configuration in configurations):
            self.stage.play(members[:1], 0, ALONE_S, 1)

    @contextlib.contextmanager
    def started(self, ls, batch, configuration):
        reserve = ls.reserve if ls else 0
        with self.stage.configured(configuration, reserve) as (ls_slice, batch_slice):
            wanted = [(ls_slice, configuration.ls_env, self.command(ls, configuration.ls_priority))] if ls else []
            for program in batch.programs() if batch else []:
                wanted.append((batch_slice, configuration.batch_env, self.command(program, "none")))
            if configuration.again:
                with self.stage.programs(wanted, max(self.left_s(), 1)) as members:
                    self.let_learn_alone(members, [configuration])
                    self.stage.play(members, 0, LEARN_S, 1)
            with self.stage.programs(wanted, max(self.left_s(), 1)) as members:
                yield members

    def command(self, workload, priority):
        return workload.command(self.stage.corun_kernels, self.sizes.get(workload.name), priority, self.stage.software)

    def prime(self, ls, batch):
        """Runs programs once, unmeasured, so that later starts find in the cache what the library compiles at a first
        start.
        """
        wanted = {program.name: program for program in (ls, *batch.programs())}
        fresh = wanted.keys() - self.primed
        configuration = self.options.primed_in
        if not fresh or configuration is None or self.left_s() < 30:
            return
        self.primed |= fresh
        try:
            with self.stage.configured(configuration, ls.reserve) as slices:
                commands = [
                    (slices[program is not ls], (), self.command(program, "none")) for program in wanted.values()
                ]
                with self.stage.programs(commands, self.left_s()) as members:
                    self.stage.play(members, 0, PRIME_S, 1)
        except (Refused, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as failure:
            self.results.note(f"priming {ls.name} and {batch.name}: {failure}"[:2000])
