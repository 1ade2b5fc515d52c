"""Evictions by the hundred, at any moment of a kernel, change no result: storm_test.py KERNEL.

Once more where all block-tasks count as short, as they do on a GPU, so that workers claim without having looked.
"""

import sys

from tests.system.harness import instance

LEAST_EVICTIONS = 150
STORM_US = 10000  # between two random grants
# Each launch takes some 300 ms on the software GPU: tens of evictions in the middle of one launch.
ARGUMENTS = {"work": ("--blocks", 2000, "--iterations", 20)}
# Block-tasks of some thousand instructions would take 100 ms each at the software GPU's usual speed.
WARP_INSTRUCTION_NS = {"matrixMul": 10_000, "reduction": 20_000}
USUAL_ARGUMENTS = ("--size", "small")


class Storm(instance.SystemTest):
    kernel = "work"

    def test_results_stay_identical(self):
        self.storm(LEAST_EVICTIONS)

    def test_results_of_eager_workers_stay_identical(self):
        self.storm(LEAST_EVICTIONS // 3, config=instance.ALL_SHORT)

    def storm(self, least, **daemon):
        arguments = (self.kernel, *ARGUMENTS.get(self.kernel, USUAL_ARGUMENTS))
        original = self.start_bench(None, *arguments, "--count", 1).report()
        self.start_daemon("--evict-storm", STORM_US, **daemon)
        self.gpuctl("create-slice", "s")
        client = self.start_bench("s", *arguments, "--count", 1000000, "--depth", 2, "--announce")
        client.wait_started()
        evictions = instance.wait_until(
            lambda: self.evictions(client, least), f"{least} evictions", seconds=150, interval=0.1
        )
        report = client.stop()
        self.assertRightResults(report)
        self.assertEqual(report["output_hash"], original["output_hash"])
        print(f"{self.kernel}: {evictions} evictions, {report['checked']} results checked", file=sys.stderr)

    def evictions(self, client, least):
        if client.process.poll() is not None:
            raise AssertionError(f"ended early: {client.err()}")
        usage = self.usage("s", client.pid)
        return usage and usage["evictions"] >= least and usage["evictions"]


if __name__ == "__main__":
    Storm.kernel = sys.argv.pop()
    Storm.warp_instruction_ns = WARP_INSTRUCTION_NS.get(Storm.kernel)
    instance.main()
