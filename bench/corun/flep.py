"""FLEP's 28 pairs of Figure 8: a long kernel of low priority runs, and 0.1 ms later a short one of high priority
arrives.

bench/papers/flep.py has the kernels, the pairs and the slots in which they meet: all programs run at once, and one run
has each pair five times. Rounds and configurations take turns. A pair has two figures in a round: the median time of
the short kernel from its issue to its end, and the time until both are done.
"""

import contextlib

from ..papers import flep as meetings
from ..papers import schedulers
from .configurations import CONFIGURATIONS, OURS
from .flep_figures import points
from .stage import Refused

DEFAULT = ("mps", "mps-stream", "mps-client", "ours-priority", "ours-hpf")
LONG, SHORT = "batch", "ls"  # slices, and the roles of stock programs
ROUND_S = 20.0


class Applications(schedulers.Schedulers):
    """Programs of the roles LONG and SHORT, in slices or with the environment of a stock configuration."""

    configuration = None

    def start(self, members, check="last"):
        if self.configuration is None or self.configuration.kind == OURS:
            return super().start(members, check)
        environments = {LONG: self.configuration.batch_env, SHORT: self.configuration.ls_env}
        self.runs += 1
        programs = []
        for index, (role, application, options) in enumerate(members):
            samples = self.lab.scratch / f"flep-{self.runs}-{index}"
            with self.lab.environment(**dict(environments[role])):
                programs.append(
                    (
                        self.lab.start_bench(
                            None,
                            *application.arguments(check),
                            "--no-gpu-time",
                            "--start-on-input",
                            "--samples",
                            samples,
                            *options,
                        ),
                        samples,
                    )
                )
        for program, _ in programs:
            program.wait_ready()
        return programs


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
    with stage.lab.few_queues():
        applications = Applications(stage.lab)
        longs, shorts = prepare(stage, applications)
        results.data["flep"] = {
            "alone_ms": {"long": {a.name: a.plain_ms for a in longs}, "short": {a.name: a.plain_ms for a in shorts}},
            "rounds": [],
        }
        for number in range(options.rounds):
            for configuration in configurations:
                if time_left() < ROUND_S:
                    results.miss(None, None, configuration, [number], "no time left")
                    continue
                try:
                    pairs = one_round(stage, applications, configuration, longs, shorts)
                    results.data["flep"]["rounds"].append(
                        {"configuration": configuration.name, "round": number, "pairs": pairs}
                    )
                    say(configuration, number, len(pairs))
                except Refused as refusal:
                    results.miss(None, None, configuration, [number], str(refusal), refused=True)
                except (RuntimeError, OSError) as failure:
                    results.miss(None, None, configuration, [number], f"{type(failure).__name__}: {failure}"[:2000])
                finally:
                    clear(stage.lab)
            results.data["flep"]["points"] = points(results.data["flep"]["rounds"])
            results.save()
        results.data["flep"]["wrong_results"] = applications.wrong


def one_round(stage, applications, configuration, longs, shorts):
    applications.configuration = configuration
    try:
        with stage.configured(configuration, 0):
            found = meetings.Meeting(applications, longs, shorts).summaries(side(configuration))
    finally:
        applications.configuration = None
    return {f"{long}_{short}": {"short_ms": at["short"], "both_ms": at["both"]} for (long, short), at in found.items()}


def clear(lab):
    """Ends the programs that a failed round has left."""
    for program in [program for program in lab.programs if program.process.poll() is None]:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
    lab.programs.clear()
