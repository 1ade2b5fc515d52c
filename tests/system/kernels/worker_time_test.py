"""Workers end so that blocks of greater priority get in: a program with that priority starts on the SMs of a rewritten
kernel before that one is over, with no grant changed. The kernels themselves say when their blocks began."""

import signal

from tests.system.harness import instance, slice_shell

GREATEST = -5
SHORT = (8, 1)  # blocks and steps of the kernel that wants to get in
ROUNDS = 4 * 64  # block-tasks in which each worker of the long kernel ends, or would
FEW = 3  # SMs
OUTRANKED = instance.ENDING.replace("always_end_workers = true\n", "")
STORM_US = 10000  # between two random grants
LEAST_EVICTIONS = 100
STORM = ("work", "--blocks", 2000, "--iterations", 20)  # some 300 ms a launch


class WorkerTime(instance.SystemTest):
    def start_both(self, config):
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "batch")
        self.batch = slice_shell.SliceShell(self, [instance.GPUCTL, "run", "--slice", "batch"])
        self.batch.do("init")
        # It reaches no daemon, so it is in no slice: nothing is granted to it.
        outside = {"LD_LIBRARY_PATH": str(instance.SOFTGPU), "GPUCTL_SOCKET": str(self.scratch / "none")}
        self.urgent = slice_shell.SliceShell(self, **outside)
        self.urgent.do("init", GREATEST)

    def launch_long(self):
        """A launch that may use all SMs from the start."""
        self.batch.do("launch", 0, *SHORT)
        self.batch.do("finish")
        instance.wait_until(lambda: self.batch.grant().capsm == instance.SMS, "all SMs")
        self.batch.do("launch", 0, *slice_shell.LONG)
        self.wait_for_blocks(ROUNDS)
        self.evictions = self.evictions_of("batch", self.batch)

    def wait_for_blocks(self, more):
        """Until so many more block-tasks of the long kernel have begun."""
        before = len(self.batch.records(0))
        instance.wait_until(lambda: len(self.batch.records(0)) >= before + more, "block-tasks to begin")

    def launch_urgent(self):
        self.urgent.do("launch", 0, *SHORT)

    def assert_gets_in(self):
        self.launch_urgent()
        instance.wait_until(lambda: len(self.urgent.records(0)) == SHORT[0], "the urgent kernel to start")
        self.assertLess(len(self.batch.records(0)), slice_shell.LONG[0], "the long kernel was too short for this test")
        self.assertEqual(self.batch.grant().capsm, instance.SMS)
        self.assertEqual(self.evictions_of("batch", self.batch), self.evictions)
        self.batch.finish(0)

    def assert_waits(self):
        self.launch_urgent()
        self.wait_for_blocks(ROUNDS)
        self.assertEqual(self.urgent.records(0), [])
        self.batch.finish(0)
        instance.wait_until(lambda: len(self.urgent.records(0)) == SHORT[0], "the urgent kernel to start after all")

    def reload(self, config):
        (self.scratch / "gpuctl.toml").write_text(config)
        self.daemon.process.send_signal(signal.SIGHUP)

    def test_blocks_of_greater_priority_get_in_where_workers_end_and_only_there(self):
        self.start_both(instance.ALWAYS_REWRITTEN)
        self.launch_long()
        self.assert_waits()
        self.reload(instance.ENDING)
        self.wait_for_worker_time(1)
        self.launch_long()
        self.assert_gets_in()

    def test_they_end_where_another_program_outranks_theirs(self):
        self.start_both(OUTRANKED)
        self.gpuctl("create-slice", "ls", "--priority", 50)
        self.launch_long()
        self.assert_waits()
        self.start_idle_in("ls")
        self.wait_for_worker_time(1)
        self.launch_long()
        self.assert_gets_in()

    def test_an_eviction_takes_their_sms_and_they_come_back(self):
        self.start_both(instance.ENDING)
        self.launch_long()
        self.gpuctl("set", "batch", f"max={FEW}")
        instance.wait_until(lambda: self.usage("batch", self.batch.pid)["holding"] == FEW, "the kernel to leave")
        self.assertEqual(self.batch.sms_now(0), set(range(FEW)))
        self.gpuctl("set", "batch", "max=0")
        instance.wait_until(lambda: self.usage("batch", self.batch.pid)["holding"] == 0, "the kernel to leave")
        self.gpuctl("set", "batch", "max=none")
        instance.wait_until(lambda: len(self.batch.sms_now(0)) == instance.SMS, "the kernel to come back")
        self.batch.finish(0)

    def test_results_stay_identical_in_a_storm(self):
        original = self.start_bench(None, *STORM, "--count", 1).report()
        eager = instance.ENDING + "block_target_us = 1000000\n"
        self.start_daemon("--evict-storm", STORM_US, config=eager)
        self.gpuctl("create-slice", "s")
        client = self.start_bench("s", *STORM, "--count", 1000000, "--depth", 2, "--announce")
        client.wait_started()
        instance.wait_until(lambda: self.evictions_of("s", client) >= LEAST_EVICTIONS, "evictions", interval=0.1)
        report = client.stop()
        self.assertRightResults(report)
        self.assertEqual(report["output_hash"], original["output_hash"])

    def wait_for_worker_time(self, us):
        instance.wait_until(
            lambda: (self.usage("batch", self.batch.pid) or {}).get("worker_time_us") == us, "a worker's time"
        )


if __name__ == "__main__":
    instance.main()
