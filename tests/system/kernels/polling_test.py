"""Kernels whose blocks wait for each other, in random ways, end in a storm of evictions: polling_test.py.

polling_test.py --seeds FIRST:END tries more of them, END not included.
"""

import argparse
import sys

from tests.system.harness import instance
from tests.system.kernels.random_test import RANDOM_KERNELS, parse_seeds

SEEDS = range(0, 12)
STORM_US = 10000  # between two random grants
CHUNK = 8


class Polling(instance.SystemTest):
    seeds = SEEDS

    def hashes(self, program):
        return [line.split() for line in program.out().splitlines()]

    def test_seeds(self):
        which = f"{self.seeds.start}:{self.seeds.stop}"
        plain = self.start(RANDOM_KERNELS, which, "--polling")
        self.assertEqual(plain.wait(), 0, plain.err())
        self.assertEqual(len(self.hashes(plain)), 2 * len(self.seeds))
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_in(
            "s",
            RANDOM_KERNELS,
            which,
            "--polling",
            env={**self.env, "GPUSLICE_CHUNK": str(CHUNK), "GPUSLICE_BACKGROUND": "0"},
        )
        # Each kernel is compiled on the way.
        self.assertEqual(program.wait(120 + 20 * len(self.seeds)), 0, program.err())
        for right, found in zip(self.hashes(plain), self.hashes(program), strict=True):
            self.assertEqual(right, found)
        print(f"seeds {which}: all ended and are right", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=parse_seeds, default=SEEDS, metavar="FIRST:END")
    arguments = parser.parse_args()
    Polling.seeds = arguments.seeds
    sys.argv[1:] = []
    instance.main()
