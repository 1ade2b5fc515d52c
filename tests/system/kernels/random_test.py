"""Random kernels leave the same memory rewritten as they do in their original form, evicted or not: random_test.py.

random_test.py --seeds FIRST:END --hours H tries more of them, END not included, until one fails or time is over.
"""

import argparse
import contextlib
import random
import shutil
import sys
import time

from tests.system.harness import instance

RANDOM_KERNELS = instance.BUILD / "tests/random/random-kernels"
SEEDS = range(0, 16)
BATCH = 25  # seeds a process runs
STORM_US = 10000  # between two random grants
SLOWLY_NS = 5000  # of a warp instruction: a launch takes some 20 to 100 ms, long enough to be evicted in the middle
RESIZE_S = 0.02
NO_PROGRESS_S = 180
LEAST_EVICTABLE = 0.7  # of few seeds many may arrive at a barrier without waiting
# One eviction in so many seeds at least, under both storms and when resized. It is some three in each.
SEEDS_AN_EVICTION = 2


class Wrong(AssertionError):
    """A seed that fails; the text says how to see it again."""

    def __init__(self, seed, what):
        super().__init__(
            f"seed {seed}: {what}\n"
            f"again: GPUCTL_BUILD={instance.BUILD} python3 -m tests.system.kernels.random_test"
            f" --seeds {seed}:{seed + 1}\n"
            f"its PTX: {RANDOM_KERNELS} --ptx {seed}"
        )


class Random(instance.SystemTest):
    seeds = SEEDS
    hours = None  # no limit
    warp_instruction_ns = 0

    def test_seeds(self):
        started = time.monotonic()
        kernels = evictions = 0
        for first in range(self.seeds.start, self.seeds.stop, BATCH):
            batch = range(first, min(first + BATCH, self.seeds.stop))
            expected = self.plain(batch)
            self.compare(batch, "rewritten", expected)
            evictions += self.compare(batch, "evicted", expected, ("--evict-storm", STORM_US), SLOWLY_NS)
            evictions += self.compare(
                batch, "claimed at once", expected, ("--evict-storm", STORM_US), SLOWLY_NS, config=instance.ALL_SHORT
            )
            evictions += self.compare(batch, "resized", expected, warp_instruction_ns=SLOWLY_NS, resize=True)
            kernels += sum("together" not in line for line in expected)
            print(
                f"seeds {self.seeds.start}:{batch.stop}: {kernels} kernels, {evictions} evictions, all right",
                file=sys.stderr,
                flush=True,
            )
            if self.hours is not None and time.monotonic() - started > self.hours * 3600:
                break
        self.assertGreater(kernels, 0)
        if len(self.seeds) >= len(SEEDS):  # of few kernels none may be long enough
            self.assertGreaterEqual(evictions, (batch.stop - self.seeds.start) // SEEDS_AN_EVICTION)

    def plain(self, seeds):
        """What the original kernels leave behind: a line for each."""
        program = self.start(RANDOM_KERNELS, f"{seeds.start}:{seeds.stop}")
        self.follow(program, seeds, "original", lambda: program.process.poll() is not None)
        if program.process.returncode != 0:
            raise Wrong(self.reached(program, seeds), f"original: {program.process.returncode}: {program.err()}")
        return program.out().splitlines()

    def compare(self, seeds, way, expected, options=(), warp_instruction_ns=0, resize=False, **daemon):
        """Runs the seeds in a slice and returns how often they were evicted."""
        with self.slice(options, warp_instruction_ns, **daemon):
            client = self.start_in("s", RANDOM_KERNELS, f"{seeds.start}:{seeds.stop}", "--linger")
            self.follow(client, seeds, way, lambda: "done" in client.err(), resize)
            for right, found in zip(expected, client.out().splitlines(), strict=True):
                if right != found:
                    raise Wrong(int(right.split()[0]), f"{way}: it left {found!r}, not {right!r}")
            fields = [line.split() for line in expected]
            # Modules of odd seeds were unloaded, so nobody explains them.
            self.check_forms(client, {kernel for seed, kernel, _ in fields if int(seed) % 2 == 0} - {"together"})
            evictions = self.usage("s", client.pid)["evictions"]
            client.process.terminate()
            self.assertEqual(client.wait(), 0, client.err())
        return evictions

    def follow(self, program, seeds, way, over, resize=False):
        """Until the program is done; it must go on meanwhile."""
        sizes = random.Random(seeds.start)
        printed, since = 0, time.monotonic()
        while not over():
            if way != "original" and program.process.poll() is not None:
                raise Wrong(
                    self.reached(program, seeds), f"{way}: it ended with {program.process.returncode}: {program.err()}"
                )
            if resize:
                self.call("SetSlice", path="s", settings={"max": sizes.randint(1, instance.SMS)})
            size = program.out_path.stat().st_size
            if size != printed:
                printed, since = size, time.monotonic()
            elif time.monotonic() - since > NO_PROGRESS_S:
                raise Wrong(self.reached(program, seeds), f"{way}: it printed nothing for {NO_PROGRESS_S} s")
            time.sleep(RESIZE_S)

    def reached(self, program, seeds):
        """The seed after the last that was done."""
        lines = program.out().splitlines()
        if not lines:
            return seeds.start
        seed, kernel, _ = lines[-1].split()
        return int(seed) + (kernel == "together")

    def check_forms(self, client, names):
        if not names:
            return
        kernels = self.kernels_of(client, *names)
        opaque = [f"{kernel['name']}: {kernel['reason']}" for kernel in kernels if kernel["form"] == "opaque"]
        self.assertLessEqual(len(opaque), (1 - LEAST_EVICTABLE) * len(kernels) + 1, opaque)

    @contextlib.contextmanager
    def slice(self, options, warp_instruction_ns, **daemon):
        """A daemon with one slice, "s", of its own."""
        self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = str(warp_instruction_ns)
        gpuctld = self.start_daemon(*options, **daemon)
        self.gpuctl("create-slice", "s")
        yield
        gpuctld.process.terminate()
        self.assertEqual(gpuctld.wait(), 0, gpuctld.err())
        # Rewritten kernels are cached, and slices remembered: neither is of use any more.
        shutil.rmtree(self.scratch / "cache", ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = str(self.warp_instruction_ns)


def parse_seeds(text):
    first, _, end = text.partition(":")
    seeds = range(int(first), int(end))
    if not seeds:
        raise ValueError(text)
    return seeds


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=parse_seeds, default=SEEDS, metavar="FIRST:END")
    parser.add_argument("--hours", type=float)
    arguments = parser.parse_args()
    Random.seeds, Random.hours = arguments.seeds, arguments.hours
    sys.argv[1:] = []
    instance.main()
