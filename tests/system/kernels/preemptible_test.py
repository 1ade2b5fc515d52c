"""A program made with gpuslice-nvcc (examples/preemptible.cu) is in its slice by itself: it is evicted, and gives right
results all the same.
"""

import re
import sys

from tests.system.harness import instance

PROGRAM = instance.CUDA_PROGRAMS / "preemptible"
LEAST_EVICTIONS = 100
FEW_ROUNDS = 20
STORM_ROUNDS = 60  # of each program
STORM_US = 2000  # between two random grants


class Preemptible(instance.SystemTest):
    warp_instruction_ns = 2000

    def start_program(self, rounds, **environment):
        return self.start(PROGRAM, rounds, env={**self.env, **environment})

    def assert_right(self, program, rounds):
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertEqual(program.out(), f"preemptible: {rounds} rounds of 608 block-tasks, 0 wrong\n")

    def kernel(self, program):
        """The one kernel, once it has been launched."""
        kernels = self.kernels_of(program)
        self.assertEqual(len(kernels), 1, kernels)
        return kernels[0]

    def test_storm(self):
        self.storm()

    def test_storm_of_eager_workers(self):
        self.storm(config=instance.ALL_SHORT)

    def storm(self, **daemon):
        self.start_daemon("--evict-storm", STORM_US, **daemon)
        self.gpuctl("create-slice", "s")
        evictions = rounds = 0
        while evictions < LEAST_EVICTIONS:
            self.assert_right(self.start_program(STORM_ROUNDS, GPUCTL_SLICE="s"), STORM_ROUNDS)
            rounds += STORM_ROUNDS
            before, evictions = evictions, self.ended("s", rounds // STORM_ROUNDS)["ended_evictions"]
            self.assertGreater(evictions, before, "the program was evicted")
        print(f"{evictions} evictions, {rounds} results checked", file=sys.stderr)

    def test_whole_sms_are_given_up_and_taken_back(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        program = self.start_program(1_000_000, GPUCTL_SLICE="s", SOFTGPU_WARP_INSTRUCTION_NS="100000")
        for most in (8, 2, 5):
            self.gpuctl("set", "s", f"max={most}")
            instance.wait_until(lambda: (self.usage("s", program.pid) or {}).get("holding") == most, f"{most} SMs held")

    def test_explained_as_what_it_is(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        kernel = self.kernel(self.start_program(1_000_000, GPUCTL_SLICE="s"))
        self.assertEqual(kernel["form"], "persistent")
        self.assertTrue(kernel["reason"].startswith("all constructs understood"), kernel)
        self.assertTrue(re.match(r"_Z4blur", kernel["name"]), kernel)
        self.assertGreater(kernel["registers"], 0)

    def test_short_launches_are_ordinary_ones(self):
        self.start_daemon(config="lab.latency_target_us = 1000000\n")
        self.gpuctl("create-slice", "s")
        program = self.start_program(1_000_000, GPUCTL_SLICE="s")

        def launched():
            usage = self.usage("s", program.pid)
            return usage and usage["launches"] >= 50 and usage

        usage = instance.wait_until(launched, "50 launches")
        self.assertLess(usage["block_tasks"], 10 * 608)  # which only workers count
        program.kill()
        self.assert_right(self.start_program(FEW_ROUNDS, GPUCTL_SLICE="s"), FEW_ROUNDS)

    def test_no_slice(self):
        self.assert_right(self.start_program(3), 3)

    def test_slice_without_daemon(self):
        self.assert_right(self.start_program(3, GPUCTL_SLICE="s"), 3)


if __name__ == "__main__":
    instance.main()
