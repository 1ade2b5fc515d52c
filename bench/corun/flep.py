"""FLEP's 28 pairs of Figure 8: a long kernel of low priority runs, and 0.1 ms later a short one of high priority
arrives.

bench/papers/flep.py has the kernels, the pairs and the slots in which they meet. Either all programs run at once, or
the two of one pair at a time, as in the paper. A round has each pair five times. Rounds and configurations take turns;
with --quick all rounds are in one start of the programs. A pair has two figures in a round: the median time of the
short kernel from its issue to its end, and the time until both are done.
"""

import contextlib

from ..papers import flep as meetings
from ..papers import schedulers
from .configurations import CONFIGURATIONS, OURS
from .flep_figures import points
from .rounds import by_start
from .stage import Refused

DEFAULT = ("mps", "mps-stream", "mps-client", "ours-priority", "ours-hpf")
LONG, SHORT = "batch", "ls"  # slices, and the roles of stock programs
ALL, TWO = "flep", "flep-two"
PROGRAMS = {ALL: "all programs at once", TWO: "two programs at a time"}
START_S = {ALL: 20.0, TWO: 6.0}  # a start of the programs that meet, and a round of theirs, takes no longer


class Applications(schedulers.Schedulers):
    """Programs of the roles LONG and SHORT, in slices or with the environment of a stock configuration."""

    configuration = None

    def start_one(self, where, words):
        if self.configuration is None or self.configuration.kind == OURS:
            return super().start_one(where, words)
        environments = {LONG: self.configuration.batch_env, SHORT: self.configuration.ls_env}
        with self.lab.environment(**dict(environments[where])):
            return self.lab.start_bench(None, *words)


def side(configuration):
    """Slices (or roles) and stream priorities of the long and of the short programs."""
    return (LONG, SHORT), ("none", configuration.ls_priority)


def prepare(stage, applications):
    """Finds the long and the short kernels, with the paper's durations, alone on the GPU."""
    with stage.configured(CONFIGURATIONS["ours-hpf"], 0):
        stage.lab.gpuctl("create-slice", "set")
        applications.calibrate()
        large, small, low, _ = meetings.applications(applications)
    return [large[name] for name in low], list(small.values())


def run(stage, results, options, configurations, time_left, say):
    stage.enter_mode(configurations[0].mode)
    applications = Applications(stage.lab)
    longs, shorts = prepare(stage, applications)
    data = results.data["flep"] = {
        "alone_ms": {"long": {a.name: a.plain_ms for a in longs}, "short": {a.name: a.plain_ms for a in shorts}},
        "programs": PROGRAMS[options.pairs],
        "rounds": [],
    }
    groups = [(longs, shorts)]
    if options.pairs == TWO:
        groups = [([long], [short]) for long in longs for short in shorts if long.name != short.name]
    for numbers in by_start(options):
        for configuration in configurations:
            rounds = [{"configuration": configuration.name, "round": number, "pairs": {}} for number in numbers]
            try:
                in_time = play(stage, applications, configuration, groups, rounds, START_S[options.pairs], time_left)
                if not in_time:
                    results.miss(None, None, configuration, numbers, "no time left")
            except Refused as refusal:
                results.miss(None, None, configuration, numbers, str(refusal), refused=True)
            except (RuntimeError, OSError) as failure:
                results.miss(None, None, configuration, numbers, f"{type(failure).__name__}: {failure}"[:2000])
            finally:
                clear(stage.lab)
            say(configuration, numbers, len(rounds[0]["pairs"]))
            data["rounds"] += [one for one in rounds if one["pairs"]]
            data["points"] = points(data["rounds"])
            results.save()
    data["wrong_results"] = applications.wrong


def play(stage, applications, configuration, groups, rounds, start_s, time_left):
    """Plays the rounds of each group of programs, a start that takes start_s. False: there was no time for some."""
    if time_left() < start_s:
        return False
    with stage.configured(configuration, 0):
        for number, group in enumerate(groups):
            if number > 0 and time_left() < start_s:
                return False
            add_group(applications, configuration, group, rounds)
    return True


def add_group(applications, configuration, group, rounds):
    """Starts the programs of a group, and adds what each round has of their pairs."""
    applications.configuration = configuration
    try:
        found = meetings.Meeting(applications, *group).rounds(side(configuration), len(rounds))
    finally:
        applications.configuration = None
    for one, summaries in zip(rounds, found, strict=True):
        for (long, short), at in summaries.items():
            one["pairs"][f"{long}_{short}"] = {"short_ms": at["short"], "both_ms": at["both"]}


def clear(lab):
    """Ends the programs that a failed round has left."""
    for program in [program for program in lab.programs if program.process.poll() is None]:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
    lab.programs.clear()
