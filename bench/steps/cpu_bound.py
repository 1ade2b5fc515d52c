"""Loops that are bound by their CPU: what a slice costs them, with nothing set and below a max."""

import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

PROGRAMS_DIR = pathlib.Path(__file__).parent.parent / "cpu_bound"
PROGRAMS = ("launch_loop", "unet", "jax_steps", "cupy_elementwise")
ROUNDS = 60
# As programs are run, with the library in them but in no slice, in a slice with nothing set, and in one with a max.
PLAIN, LOADED, FREE, BELOW = "plain", "library loaded", "nothing set", "below a max"
TARGETS = {LOADED: "", FREE: "<= 1.01", BELOW: "<= 1.02"}
SHORTEST_TURN_S, START_S, QUIET_S = 0.1, 180, 90
CORES = 4  # that all variants of a program have together: processors of a machine are not equally fast


def interval(values):
    """Between which two of them the median of what they are samples of lies, with a confidence of 95 % or more; all of
    them where they are too few for that."""
    values = sorted(values)
    tail, cut = 0, 0
    for below in range(len(values) // 2):
        tail += math.comb(len(values), below) / 2 ** len(values)
        if tail > 0.025:
            break
        cut = below
    return values[cut], values[len(values) - 1 - cut]


def ratios(turns, variant):
    """Of each round: the time of a step over its time plain."""
    return [one[PLAIN] / one[variant] for one in turns]


def on_the_same_cores():
    cores = sorted(os.sched_getaffinity(0))[-CORES:]
    return ["taskset", "-c", ",".join(map(str, cores))]


class Loop:
    """A program that runs its loop when it is told to."""

    def __init__(self, lab, name, variant):
        self.lab, self.name, self.variant = lab, name, variant
        if name == "launch_loop":
            command = [lab.build / "bench/launch-loop", lab.size(200, 2)]
        else:
            command = [sys.executable, PROGRAMS_DIR / f"{name}.py"]
        slices = {PLAIN: None, LOADED: None, FREE: "free", BELOW: "below"}
        # Background forms as users have them.
        environment = {"GPUSLICE_BACKGROUND": "1"}
        if variant == LOADED:
            environment |= {"LD_PRELOAD": str(lab.build / "src/libgpuslice/libgpuslice.so"), "GPUCTL_SOCKET": ""}
        with lab.environment(**environment):
            self.program = lab.start(slices[variant], *on_the_same_cores(), *command)
        self.read = 0

    def line(self, patience_s):
        """The next line that it prints; None: it ended."""
        deadline = time.monotonic() + patience_s
        while True:
            lines = self.program.out().split("\n")
            if len(lines) > self.read + 1:
                self.read += 1
                return lines[self.read - 1]
            if self.program.process.poll() is not None:
                return None
            if time.monotonic() > deadline:
                raise self.program.failure("says nothing")
            time.sleep(0.01)

    def ready(self):
        """False: the machine lacks what it needs."""
        line = self.line(START_S)
        if line is None and self.program.process.wait() == 77:
            return False
        while line not in (None, "READY"):  # libraries print too
            line = self.line(START_S)
        if line is None:
            raise self.program.failure("ended early")
        return True

    def turn(self, seconds):
        """Steps a second."""
        self.program.process.stdin.write(f"{seconds}\n".encode())
        self.program.process.stdin.flush()
        line = self.line(seconds + START_S)
        if line is None:
            raise self.program.failure("ended early")
        steps, took = line.split()
        return int(steps) / float(took)


def wait_for_compilers():
    """Until the compile helpers of these programs have ended: they use the CPU."""
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        if subprocess.run(["pgrep", "-x", "gpuslice-compil"], stdout=subprocess.DEVNULL).returncode != 0:
            return
        time.sleep(0.5)


def measure(lab, name, budget_s):
    """The steps a second of each round, by variant; None: the machine lacks what the program needs."""
    variants = (PLAIN, LOADED, FREE, BELOW)
    began = time.monotonic()
    loops = [Loop(lab, name, variant) for variant in variants]
    try:
        if not all([loop.ready() for loop in loops]):
            return None
        for loop in loops:
            loop.turn(SHORTEST_TURN_S)
        wait_for_compilers()
        rounds = lab.size(ROUNDS, 2)
        left_s = budget_s - (time.monotonic() - began)
        turn_s = max(SHORTEST_TURN_S, left_s / (rounds * len(loops)))
        turns = []
        for number in range(rounds):
            order = loops[number % len(loops) :] + loops[: number % len(loops)]
            rates = {loop.variant: loop.turn(turn_s) for loop in order}
            turns.append({variant: rates[variant] for variant in variants})
            lab.record(program=name, round=number, steps_per_s=turns[-1])
        return turns
    finally:
        for loop in loops:
            loop.program.kill()


def step_cpu_bound(lab):
    """Loops that are bound by their CPU, by turns plain, with the library loaded but in no slice, in a slice with
    nothing set, and in one with a max of three quarters: the time of a step over plain, the median of the rounds.
    """
    names = [name for name in PROGRAMS if not lab.options.rehearse or name == "launch_loop"]
    chosen = os.environ.get("CPU_BOUND_PROGRAMS")
    if chosen:
        names = chosen.split(",")
    with lab.gpuctld():
        lab.gpuctl("create-slice", "free")
        lab.gpuctl("create-slice", "below", "--max", lab.sms() * 3 // 4)
        for name in names:
            turns = measure(lab, name, lab.size(lab.options.seconds / len(names), 1))
            if turns is None:
                yield (f"{name}: NOT MEASURED", "", "Python lacks what it needs")
                continue
            plain = statistics.median(one[PLAIN] for one in turns)
            for variant, target in TARGETS.items():
                all_ratios = ratios(turns, variant)
                low, high = interval(all_ratios)
                yield (
                    f"{name}, {plain:.1f} steps/s plain: {variant}, time over plain ({len(turns)} rounds)",
                    target,
                    f"{statistics.median(all_ratios):.3f} ({low:.3f} to {high:.3f})",
                )
