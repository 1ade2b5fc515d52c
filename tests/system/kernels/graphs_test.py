"""Kernels in CUDA graphs are evicted as others are: results are right, launches counted, forms explained."""

import re
import sys

from tests.system.harness import instance

PROGRAM = instance.DRIVER_PROGRAMS / "graph_storm"
KINDS = ["chain", "branches", "updated_branches", "nodes", "updated", "mixed", "nested"]
STORM_US = 10000  # between two random grants
LEAST_EVICTIONS = 200
LEAST_LAUNCHES = 300
AT_WORK_US = 200_000
# Rewritten ones of one round of each kind: 3 * 3 + 1, 4, 0 but in the first round, 3 or 4, 2, and 2 with one between
# them that has no other form; nested has 1 and 2 * 2.
MOST_LAUNCHES_A_ROUND = 27


class Graphs(instance.SystemTest):
    warp_instruction_ns = 10_000

    def test_plain(self):
        for variable in ("GPUCTL_SOCKET", "GPUCTL_SLICE"):
            self.env.pop(variable, None)
        client = self.start(PROGRAM, 2)
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertRightLines(client, least=4)

    def test_in_a_slice(self):
        self.start_daemon()
        client = self.start_in_slice(0)
        usage = instance.wait_until(lambda: self.used(client, LEAST_LAUNCHES), "launches", seconds=150, interval=0.1)
        forms = {kernel["name"]: kernel for kernel in self.kernels_of(client, "step", "combine", "wait_and_step")}
        self.assertEqual(forms["step"]["form"], "persistent", forms)
        self.assertEqual(forms["combine"]["form"], "persistent", forms)
        self.assertEqual(forms["wait_and_step"]["form"], "opaque", forms)
        for kernel in forms.values():
            self.assertGreater(kernel["launches"], 0, kernel)
        self.assertIn("in its original form in a graph: it has branches and was updated", forms["combine"]["reason"])
        rounds = self.end(client)
        self.assertGreater(usage["block_tasks"], 0)
        self.assertLessEqual(usage["launches"], (rounds + 2) * MOST_LAUNCHES_A_ROUND)

    def test_case_by_case(self):
        """What the driver answers and does in a slice is what it does without."""
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        self.env["GPUCTL_SLICE"] = "s"
        client = self.start(instance.DRIVER_PROGRAMS / "graphs")
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertEqual(client.err(), "")
        self.assertGreater(client.out().count(": right\n"), 5, client.out())

    def test_storm(self):
        self.start_daemon("--evict-storm", STORM_US)
        client = self.start_in_slice(0)

        def enough():
            usage = self.used(client, LEAST_LAUNCHES)
            return usage if usage and usage["evictions"] >= LEAST_EVICTIONS else None

        usage = instance.wait_until(enough, f"{LEAST_EVICTIONS} evictions", seconds=150, interval=0.1)
        rounds = self.end(client)
        print(f"{usage['evictions']} evictions, {rounds} results right of each of {len(KINDS)} kinds", file=sys.stderr)

    def test_a_launch_call_that_lasts_as_long_as_its_graph(self):
        self.env["SOFTGPU_GRAPH_LAUNCH_WAITS"] = "1"
        self.start_daemon("--evict-storm", STORM_US)
        client = self.start_in_slice(3)
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertRightLines(client, least=6)

    def test_kernels_known_to_be_short_are_launched_as_they_are(self):
        self.start_daemon(config="lab.latency_target_us = 1000000\ndaemon.always_preemptible = true\n")
        client = self.start_in_slice(0)
        first = instance.wait_until(lambda: self.used(client, LEAST_LAUNCHES), "launches", seconds=150, interval=0.1)
        last = instance.wait_until(lambda: self.used(client, 2 * LEAST_LAUNCHES), "launches", seconds=150, interval=0.1)
        self.end(client)
        self.assertGreater(first["block_tasks"], 0, "the first launches are measured")
        self.assertLess(last["block_tasks"] - first["block_tasks"], LEAST_LAUNCHES * 250 // 2)

    def test_resized_while_a_graph_runs(self):
        self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = str(100_000 * instance.SLOWER)
        self.start_daemon()
        client = self.start_in_slice("long", 12000)
        instance.wait_until(lambda: "started" in client.err(), "the graph to be launched")
        self.wait_holding(client, instance.SMS)
        instance.wait_until(lambda: self.usage("s", client.pid)["outstanding"] == 2, "both kernels to be in the books")
        # And workers to be where the books say that they are.
        instance.wait_until(
            lambda: self.usage("s", client.pid)["busy_us"] > AT_WORK_US * instance.SLOWER, "the kernel to be at work"
        )
        first = self.usage("s", client.pid)
        for sms in (2, 5):
            self.gpuctl("set", "s", f"max={sms}")
            self.wait_holding(client, sms)
            # An eviction that is over, but not yet counted when SMs come back, is none.
            instance.wait_until(
                lambda: self.usage("s", client.pid)["evictions"] > first["evictions"], "the eviction to be counted"
            )
        self.gpuctl("set", "s", "max=none")
        self.wait_holding(client, instance.SMS)
        last = self.usage("s", client.pid)
        self.assertGreaterEqual(last["outstanding"], 1, "the graph had ended before it was grown")
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertRegex(client.out(), r"long: \d+ words, 0 wrong\n")

    def start_in_slice(self, *arguments):
        self.gpuctl("create-slice", "s")
        self.env["GPUCTL_SLICE"] = "s"
        return self.start(PROGRAM, *arguments)

    def used(self, client, launches):
        if client.process.poll() is not None:
            raise AssertionError(f"ended early with {client.process.returncode}: {client.err()}{client.out()}")
        usage = self.usage("s", client.pid)
        return usage if usage and usage["launches"] >= launches else None

    def end(self, client):
        """Ends the program in good order; how many results of each kind there were."""
        client.process.terminate()
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertEqual(client.err(), "")
        return self.assertRightLines(client, least=2)

    def assertRightLines(self, client, least):
        found = re.findall(r"(\w+): (\d+) results, 0 wrong\n", client.out())
        self.assertEqual([name for name, _ in found], KINDS, client.out())
        counts = [int(results) for _, results in found]
        self.assertGreaterEqual(min(counts), least)
        return max(counts)

    def wait_holding(self, client, sms):
        instance.wait_until(
            lambda: (self.usage("s", client.pid) or {}).get("holding") == sms,
            f"the client to hold {sms} SMs; now: {self.usage('s', client.pid)}",
        )


if __name__ == "__main__":
    instance.main()
