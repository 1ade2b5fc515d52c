"""A short kernel waits for a whole batch kernel when nobody manages the GPU, and not in a slice with a reserve.

Not a benchmark: first-come-first-served dispatch lets each launch wait for half a second and more, a reserve lets it
start at once. So the medians are far apart, and that they are in this order is all that is asked."""

import sys
import time

from tests.system.harness import instance

LS = ("work", "--blocks", 8, "--iterations", 4, "--arrival", "periodic", "--period-us", 40000)
BATCH = ("work", "--blocks", 4096, "--iterations", 20, "--depth", 2)
SECONDS = 5


class HeadOfLine(instance.SystemTest):
    def test_reserve_keeps_the_short_kernel_short(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-mode", "strict")
        self.gpuctl("create-slice", "batch")
        self.assertLess(self.both("ls", "batch"), self.both(None, None))

    def both(self, ls_slice, batch_slice):
        """The median latency of LS in microseconds, beside batch."""
        start = time.monotonic_ns() + 3_000_000_000
        timing = ("--seconds", SECONDS, "--start-at", start)
        batch = self.start_bench(batch_slice, *BATCH, *timing)
        ls = self.start_bench(ls_slice, *LS, *timing)
        ls_report, batch_report = ls.report(), batch.report()
        self.assertRightResults(ls_report)
        self.assertRightResults(batch_report)
        self.assertGreater(batch_report["launches"], 3)
        latency = ls_report["latency_us"]
        print(
            f"{ls_slice or 'unmanaged'}: LS p50 {latency['p50']:.0f} p99 {latency['p99']:.0f} us, "
            f"batch {batch_report['kernels_per_s']:.2f} kernels/s",
            file=sys.stderr,
        )
        return latency["p50"]


if __name__ == "__main__":
    instance.main()
