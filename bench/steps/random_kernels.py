"""Random kernels (tests/random) on the GPU: do they leave the same memory plain, rewritten, and in a storm of
evictions?
"""

import itertools
import time

from ..lab.lab import ALWAYS_REWRITTEN

FIRST_SEED = 10_000
SEEDS_A_PROCESS = 10
PROCESS_LIMIT_S = 120


class Batch:
    """Some seeds, first plain, then in a slice."""

    def __init__(self, lab, first):
        self.lab, self.seeds = lab, f"{first}:{first + SEEDS_A_PROCESS}"
        self.expected, self.evictions = None, 0
        self.program = self.run(None)

    def run(self, slice_path):
        return self.lab.start(
            slice_path,
            self.lab.build / "tests/random/random-kernels",
            self.seeds,
            "--calls-together",
            "--linger",
            limit_s=PROCESS_LIMIT_S,
        )

    def done(self):
        """Whether nothing is left to run. An error is an exception that names the seeds."""
        if self.program.process.poll() is not None:
            raise self.program.failure(f"ended with status {self.program.process.returncode}")
        if "done" not in self.program.err():
            return False
        lines = self.program.out().splitlines()
        if self.expected is None:
            self.expected = lines
            self.program.stop()
            self.program = self.run("s")
            return False
        clients = self.lab.call("ListClients")["clients"]
        self.evictions = sum(c["usage"][0]["evictions"] for c in clients if c["usage"] and self.seeds in c["command"])
        self.program.stop()
        for right, found in itertools.zip_longest(self.expected, lines):
            if right != found:
                raise RuntimeError(f"random-kernels {self.seeds}: {found!r} in the slice, {right!r} plain")
        return True

    def kernels(self):
        return sum("together" not in line for line in self.expected)


def step_random(lab):
    """Random kernels: the memory they leave plain and in a storm of evictions."""
    deadline = time.monotonic() + lab.size(lab.options.seconds, 10)
    at_once = lab.size(10, 2)
    first, running = FIRST_SEED, []
    kernels = evictions = seeds = wrong = 0
    with lab.gpuctld("--evict-storm", lab.size(50, 3000), config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        while running or time.monotonic() < deadline:
            while len(running) < at_once and time.monotonic() < deadline:
                running.append(Batch(lab, first))
                first += SEEDS_A_PROCESS
            for batch in list(running):
                try:
                    if not batch.done():
                        continue
                    kernels += batch.kernels()
                    evictions += batch.evictions
                    seeds += SEEDS_A_PROCESS
                except RuntimeError as error:
                    wrong += 1
                    yield (f"seeds {batch.seeds}: WRONG", "", str(error)[:160])
                running.remove(batch)
            time.sleep(0.01)
    yield (
        f"{kernels} random kernels of {seeds} seeds from {FIRST_SEED} on, each alone and twice "
        f"with the others of its module, {evictions} evictions",
        "the same",
        "the same" if wrong == 0 else f"{wrong} processes DIFFER",
    )
