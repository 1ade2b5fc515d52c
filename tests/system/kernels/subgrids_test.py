"""Kernels that run as a series of subgrids (subgrid_us) instead of by workers leave the same results, and give their
SMs back between two subgrids."""

import signal

from tests.system.harness import instance, slice_shell

STORM_US = 5000  # between two random grants
LEAST_EVICTIONS = 8
# A kernel of each kind: grids of one, two and three dimensions, shared memory, early returns, atomics, several steps.
KERNELS = {
    "vectorAdd": (),
    "matrixMul": (),
    "reduction": (),
    "FDTD3d": ("--extent", "130,60,6"),
    "histogram": (),
    "scan": (),
    "sort": ("--extent", "20003"),
    "lavaMD": (),
    "stencil2D": (),
}
SHORT = (8, 1)  # blocks and steps of a kernel of another program
WAVE = 8 * instance.SMS  # blocks of the long kernel that fit
ROUNDS = 20
STREAMS = 4
MANY_EVICTIONS = 50
MANY_LAUNCHES = 20
LONG = ("work", "--blocks", 3000, "--iterations", 10, "--depth", 2)
ONE_WAVE = ("work", "--blocks", 8, "--iterations", 4)


class Subgrids(instance.SystemTest):
    warp_instruction_ns = 1_000

    def test_results_stay_identical(self):
        self.start_daemon("--evict-storm", STORM_US, config=instance.SLICED)
        self.gpuctl("create-slice", "s")
        for kernel, extent in KERNELS.items():
            with self.subTest(kernel):
                self.compare(kernel, *extent)

    def compare(self, *arguments):
        original = self.start_bench(None, *arguments, "--count", 1, "--warmup", 0).report()
        self.assertRightResults(original)
        client = self.start_bench("s", *arguments, "--count", 1000000, "--depth", 2, "--announce")
        client.wait_started()
        instance.wait_until(lambda: self.evictions_of("s", client) >= LEAST_EVICTIONS, "evictions")
        kernels = self.kernels_of(client)
        report = client.stop()
        self.assertRightResults(report)
        self.assertEqual(report["output_hash"], original["output_hash"])
        self.assertEqual({kernel["form"] for kernel in kernels}, {"sliced"}, kernels)

    def test_several_streams(self):
        self.start_daemon("--evict-storm", STORM_US, config=instance.SLICED)
        self.gpuctl("create-slice", "s")
        client = self.start_in("s", instance.DRIVER_PROGRAMS / "streams", STREAMS, 0)
        instance.wait_until(lambda: self.evictions_of("s", client) >= MANY_EVICTIONS, "evictions")
        self.assertAllRight(client, "streams")

    def test_a_policy_for_jobs_takes_turns_between_subgrids(self):
        self.start_daemon(config=instance.SLICED)
        self.gpuctl("set", "/", "policy=hpf:protect_ms=1000")
        self.gpuctl("create-slice", "high", "--priority", 10)
        self.gpuctl("create-slice", "low")
        low = self.start_bench("low", *LONG, "--count", 1000000, "--announce")
        low.wait_started()
        high = self.start_bench("high", *ONE_WAVE, "--count", 1000000, "--announce")
        high.wait_started()
        before = self.launches_of("high", high)
        instance.wait_until(lambda: self.launches_of("high", high) >= before + MANY_LAUNCHES, "launches")
        self.assertGreater(self.evictions_of("low", low), 0)
        self.assertRightResults(high.stop())
        self.assertRightResults(low.stop())

    def test_the_daemon_learns_how_long_whole_launches_take(self):
        """Four blocks fit on an SM, and each takes 10 ms at least. A subgrid is one wave."""
        waves = 10
        self.start_daemon(config=instance.SLICED)
        self.gpuctl("set", "/", "policy=sjf")
        client = self.start_in("/", instance.DRIVER_PROGRAMS / "scaling", "scales", waves * 4 * instance.SMS)

        def known():
            return [kernel for kernel in self.call("ListKernels")["kernels"] if kernel["launches"] > 1]

        (kernel,) = instance.wait_until(known, "the kernel's duration to be known")
        self.assertEqual({kernel["form"] for kernel in self.kernels_of(client)}, {"sliced"})
        self.assertGreater(kernel["observed_us"], 0.9 * waves * 10_000)
        self.assertGreater(kernel["predicted_us"], 0)
        self.assertAllRight(client, "scaling")

    def launches_of(self, slice_path, program):
        return self.usage(slice_path, program.pid)["launches"]

    def test_the_daemon_may_die_while_nothing_is_granted(self):
        self.start_daemon(config=instance.SLICED)
        self.gpuctl("create-slice", "s")
        client = self.start_bench("s", *LONG, "--count", 1000000, "--announce")
        client.wait_started()
        self.gpuctl("set", "s", "max=0")
        instance.wait_until(lambda: self.usage("s", client.pid)["holding"] == 0, "the kernel to leave")
        self.daemon.kill()
        self.start_daemon(config=instance.SLICED)
        self.gpuctl("set", "s", "max=none")
        instance.wait_until(lambda: self.usage("s", client.pid), "the program to attach again")
        before = self.launches_of("s", client)
        instance.wait_until(lambda: self.launches_of("s", client) > before + 1, "launches")
        self.assertRightResults(client.stop())

    def test_two_threads_launch_into_one_stream(self):
        self.start_daemon(config=instance.SLICED)
        self.gpuctl("create-slice", "s")
        client = self.start_in("s", instance.DRIVER_PROGRAMS / "one_stream", ROUNDS)
        self.assertEqual(client.wait(), 0, client.out() + client.err())
        self.assertEqual(client.out(), f"one_stream: {ROUNDS} rounds, 0 mixed\n")


class LongKernel(instance.SystemTest):
    """A kernel whose blocks say when they begin, in more than a hundred subgrids of one wave."""

    def start_long(self, config=instance.SLICED):
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "batch")
        self.batch = slice_shell.SliceShell(self, [instance.GPUCTL, "run", "--slice", "batch"])
        self.batch.do("init")
        self.batch.do("launch-aside", 0, *slice_shell.LONG)
        self.wait_for_blocks(4 * WAVE)

    def begun(self):
        return len(self.batch.records(0))

    def wait_for_blocks(self, more):
        before = self.begun()
        instance.wait_until(lambda: self.begun() >= before + more, "blocks to begin")

    def holding(self):
        return self.usage("batch", self.batch.pid)["holding"]

    def test_an_eviction_waits_for_the_subgrids_that_were_launched(self):
        self.start_long()
        instance.wait_until(lambda: self.holding() == instance.SMS, "all SMs to be held")
        before = self.begun()
        self.gpuctl("set", "batch", "max=0")
        instance.wait_until(lambda: self.holding() == 0, "the kernel to leave")
        self.assertEqual(self.evictions_of("batch", self.batch), 1)
        left = self.begun()
        self.assertLess(left - before, slice_shell.LONG[0] / 4)
        self.assertEqual(left % WAVE, 0)
        self.gpuctl("set", "batch", "max=none")
        self.wait_for_blocks(2 * WAVE)
        self.batch.finish(0)

    def test_another_program_gets_in_between_two_subgrids(self):
        self.start_long()
        # It reaches no daemon, so it is in no slice: nothing is granted to it.
        outside = {"LD_LIBRARY_PATH": str(instance.SOFTGPU), "GPUCTL_SOCKET": str(self.scratch / "none")}
        other = slice_shell.SliceShell(self, **outside)
        other.do("init")
        other.do("launch", 0, *SHORT)
        instance.wait_until(lambda: len(other.records(0)) == SHORT[0], "the other kernel to start")
        self.assertLess(self.begun(), slice_shell.LONG[0], "the long kernel was too short for this test")
        self.batch.finish(0)

    def test_a_part_of_the_gpu_confines_the_next_subgrids(self):
        self.start_long()
        self.gpuctl("set", "batch", "max=2")
        instance.wait_until(lambda: len(self.batch.sms_now(0)) == 2, "the kernel to shrink")
        self.batch.finish(0)

    def test_kernels_in_graphs_and_without_the_setting_are_whole(self):
        self.start_long()
        self.batch.finish(0)
        self.batch.do("graph", 0, *SHORT)
        self.batch.do("finish")
        self.wait_for_reason("in its original form in a graph: a graph has no place for a series of subgrids")
        (self.scratch / "gpuctl.toml").write_text(instance.ALWAYS_REWRITTEN)
        self.daemon.process.send_signal(signal.SIGHUP)
        self.wait_for_reason("launched since kernels have no subgrids any more in its original form", launch=True)

    def wait_for_reason(self, reason, launch=False):
        def known():
            if launch:
                self.batch.do("launch", 0, *SHORT)
                self.batch.do("finish")
            (kernel,) = self.kernels_of(self.batch, "record")
            self.assertEqual(kernel["form"], "sliced")
            return reason in kernel["reason"]

        instance.wait_until(known, f"'{reason}' to be explained")


if __name__ == "__main__":
    instance.main()
