"""Four streams of one process with long kernels at the same time, evicted at any moment, two of them latency-critical:
every word of every result is right."""

import re
import sys

from tests.system.harness import instance

STORM_US = 10000  # between two random grants
STREAMS = 4
LEAST_EVICTIONS = 200
LEAST_LAUNCHES = 20
ONE_QUEUE_LAUNCHES = 5
MEMSET_US = 100_000  # a third of what a launch takes


class Streams(instance.SystemTest):
    def test_all_alike(self):
        self.storm(critical=0)

    def test_two_of_them_latency_critical(self):
        self.storm(critical=2)

    def test_with_one_hardware_queue(self):
        """Workers cannot come while anything waits: who holds a launch's place has to end it."""
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        self.env |= {"GPUCTL_SLICE": "s", "SOFTGPU_WORK_QUEUES": "1", "SOFTGPU_WARP_INSTRUCTION_NS": "2000"}
        client = self.start(instance.DRIVER_PROGRAMS / "streams", STREAMS, 0)
        instance.wait_until(
            lambda: (self.usage("s", client.pid) or {"launches": 0})["launches"] >= ONE_QUEUE_LAUNCHES,
            f"{ONE_QUEUE_LAUNCHES} launches",
            seconds=100,
            interval=0.1,
        )
        client.process.terminate()
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertRegex(client.out(), r"streams: \d+ results, 0 wrong\n")

    def test_first_launches_where_a_memset_takes_long(self):
        """None of ours comes in the middle of a launch in another stream, whose launch block it would empty."""
        self.env["SOFTGPU_MEMSET_US"] = str(MEMSET_US)
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        report = self.start_bench(
            "s", "work", "--blocks", 2000, "--iterations", 20, "--count", 5, "--depth", 2
        ).report()
        self.assertRightResults(report)

    def storm(self, critical):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        self.env["GPUCTL_SLICE"] = "s"
        client = self.start(instance.DRIVER_PROGRAMS / "streams", STREAMS, critical)
        instance.wait_until(
            lambda: self.enough(client),
            f"{LEAST_EVICTIONS} evictions of {LEAST_LAUNCHES} launches",
            seconds=150,
            interval=0.1,
        )
        usage = self.usage("s", client.pid)
        client.process.terminate()
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        line = re.fullmatch(r"streams: (\d+) results, 0 wrong\n", client.out())
        self.assertIsNotNone(line, client.out())
        self.assertGreaterEqual(int(line.group(1)), LEAST_LAUNCHES)
        self.assertEqual(client.err(), "")
        print(f"{critical} critical: {usage['evictions']} evictions, {line.group(1)} results right", file=sys.stderr)

    def enough(self, client):
        if client.process.poll() is not None:
            raise AssertionError(f"ended early with {client.process.returncode}: {client.err()}{client.out()}")
        usage = self.usage("s", client.pid)
        return usage and usage["evictions"] >= LEAST_EVICTIONS and usage["launches"] >= LEAST_LAUNCHES


if __name__ == "__main__":
    instance.main()
