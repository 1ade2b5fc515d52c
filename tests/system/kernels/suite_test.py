"""Every kernel of gpuslice-bench, all its launches: rewritten, and under evictions at any moment, the same results."""

import json
import subprocess
import sys
import time

from tests.system.harness import instance

LEAST_EVICTIONS = 6  # of each kernel
EVICTIONS_S = 3 * instance.PATIENCE_S  # on a machine with much else to do: bfs needs 4 s by itself
STORM_US = 1000  # between two random grants
# In place of the trivial size: a grid of a few blocks is seldom on an SM that is taken away.
EXTENTS = {
    "bfs": "200003",
    "cfd": "5003",
    "FDTD3d": "130,60,6",
    "myocyte": "1024,20",
    "nbody": "2003",
    "sort": "20003",
}


class Suite(instance.SystemTest):
    warp_instruction_ns = 1_000  # a launch at trivial size takes some ten milliseconds

    def test_results_stay_identical(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        for kernel in self.kernels():
            with self.subTest(kernel):
                self.compare(kernel)

    def kernels(self):
        done = subprocess.run([str(instance.BENCH), "list", "--json"], capture_output=True, text=True, check=True)
        return [kernel["name"] for kernel in json.loads(done.stdout)["kernels"]]

    def compare(self, kernel):
        start = time.monotonic()
        arguments = (kernel, *(("--extent", EXTENTS[kernel]) if kernel in EXTENTS else ()))
        original = self.start_bench(None, *arguments, "--count", 1, "--warmup", 0).report()
        self.assertRightResults(original)
        client = self.start_bench("s", *arguments, "--count", 1000000, "--depth", 2, "--announce")
        client.wait_started()
        evictions = instance.wait_until(lambda: self.evictions(client), f"{LEAST_EVICTIONS} evictions", EVICTIONS_S)
        forms = [(entry["name"], entry["form"], entry["reason"]) for entry in self.kernels_of(client)]
        report = client.stop()
        self.assertRightResults(report)
        self.assertEqual(report["output_hash"], original["output_hash"])
        self.assertNotEqual(forms, [])
        self.assertEqual([entry for entry in forms if entry[1] != "persistent"], [])
        print(
            f"{kernel}: {len(forms)} entries, {report['steps']} steps, {evictions} evictions, {report['checked']} "
            f"results checked, {time.monotonic() - start:.1f} s",
            file=sys.stderr,
        )

    def evictions(self, client):
        if client.process.poll() is not None:
            raise AssertionError(f"ended early: {client.err()}")
        usage = self.usage("s", client.pid)
        return usage and usage["evictions"] >= LEAST_EVICTIONS and usage["evictions"]


if __name__ == "__main__":
    instance.main()
