"""Every launch is demand, however short: one that runs in its original form takes SMs from whoever holds them, as a
long one does, and one of a slice with a maximum of zero does not start. The kernels themselves say when they began."""

import time

from tests.system.harness import instance, slice_shell

SHORT = (8, 1)  # blocks and steps
# Whatever has been measured once is short enough for its original form.
ALL_SHORT = "lab.latency_target_us = 1000000\n"
SOME = 20  # launches, or block-tasks
MOST = instance.SMS - 1  # a slice with this maximum is managed
OTHER = ("work", "--blocks", 8, "--iterations", 1, "--count", 1000000, "--depth", 1)


class Demand(instance.SystemTest):
    def shell_in(self, slice_path):
        shell = slice_shell.SliceShell(self, [instance.GPUCTL, "run", "--slice", slice_path])
        shell.do("init")
        return shell

    def launches(self, slice_path, program):
        return (self.usage(slice_path, program.pid) or {"launches": 0})["launches"]

    def wait_for_launches(self, slice_path, program, more=SOME):
        before = self.launches(slice_path, program)
        instance.wait_until(lambda: self.launches(slice_path, program) >= before + more, f"launches in {slice_path}")

    def start_batch(self):
        """A kernel that holds all SMs and would for 10 s, begun while the reserve of ls is lent."""
        batch = self.shell_in("batch")
        lent = lambda: (self.usage("batch", batch.pid) or {}).get("mode") in ("lent", "workers")  # noqa: E731
        instance.wait_until(lent, "the reserve to be lent")
        batch.do("launch", 0, *slice_shell.LONG)
        instance.wait_until(
            lambda: (self.usage("batch", batch.pid) or {}).get("holding") == instance.SMS, "batch to hold all SMs"
        )
        return batch

    def assert_gets_in(self, ls, batch):
        """A short launch runs before the long one is over."""
        ls.do("launch", 0, *SHORT)
        instance.wait_until(lambda: len(ls.records(0)) == SHORT[0], "the short launch to run")
        self.assertLess(len(batch.records(0)), slice_shell.LONG[0], "the long kernel was too short for this test")
        batch.finish(0)

    def make_known(self, shell, slice_path):
        """Launches the kernel until it runs in its original form, which it does once it is known to be short."""

        def in_original_form():
            before = self.usage(slice_path, shell.pid)
            shell.do("launch", 0, *SHORT)
            shell.do("finish")
            instance.wait_until(
                lambda: self.launches(slice_path, shell) > before["launches"], "the launch to be counted"
            )
            return self.usage(slice_path, shell.pid)["block_tasks"] == before["block_tasks"]

        instance.wait_until(lambda: self.usage(slice_path, shell.pid), "the program to be attached")
        instance.wait_until(in_original_form, "the kernel to be known as short")

    def test_a_short_launch_gets_its_reserve_back_that_was_lent(self):
        """Nothing is in force for it: it is not managed at all."""
        self.start_daemon(config=ALL_SHORT)
        self.gpuctl("create-slice", "ls", "--reserve", 2)
        self.gpuctl("create-slice", "batch")
        ls, batch = self.shell_in("ls"), self.start_batch()
        self.assert_gets_in(ls, batch)

    def test_a_short_launch_of_a_managed_program_gets_its_reserve_back(self):
        self.start_daemon(config=ALL_SHORT)
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-hold", "1ms", "--max", MOST)
        self.gpuctl("create-slice", "batch")
        ls = self.shell_in("ls")
        self.make_known(ls, "ls")
        batch = self.start_batch()
        self.assert_gets_in(ls, batch)

    def test_a_short_launch_gets_its_share_by_weight(self):
        self.start_daemon(config=ALL_SHORT)
        self.gpuctl("create-slice", "ls", "--priority", 50)
        self.gpuctl("create-slice", "batch", "--weight", 50)
        ls = self.shell_in("ls")
        batch = self.shell_in("batch")
        self.make_known(ls, "ls")
        batch.do("launch", 0, *slice_shell.LONG)
        instance.wait_until(
            lambda: (self.usage("batch", batch.pid) or {}).get("holding") == instance.SMS, "batch to hold all SMs"
        )
        self.assert_gets_in(ls, batch)

    def assert_held(self, shell, *launch):
        """With a maximum of zero a launch is demand, and starts when the slice may have something again."""
        self.gpuctl("set", "held", "max=0")
        instance.wait_until(lambda: self.usage("held", shell.pid)["granted"] == 0, "the grant to be zero")
        shell.tell(*launch)
        instance.wait_until(lambda: self.usage("held", shell.pid)["demand"] > 0, "the launch to be demand")
        opened_ns = time.monotonic_ns()
        self.gpuctl("set", "held", f"max={MOST}")
        self.assertEqual(shell.answer(launch), "ok")
        shell.do("finish")
        records = shell.records(launch[1])
        self.assertEqual(len(records), launch[2])
        self.assertGreater(min(record.start_ns for record in records), opened_ns)

    def test_a_maximum_of_zero_holds_all_launches(self):
        self.start_daemon(config=ALL_SHORT)
        self.gpuctl("create-slice", "held", "--max", MOST)
        shell = self.shell_in("held")
        with self.subTest("rewritten"):
            self.assert_held(shell, "launch", 0, *SHORT)
        self.make_known(shell, "held")
        for kind in ("launch", "graph"):
            with self.subTest(f"short {kind}"):
                before = self.usage("held", shell.pid)["block_tasks"]
                self.assert_held(shell, kind, 0, *SHORT)
                self.assertEqual(self.usage("held", shell.pid)["block_tasks"], before)


if __name__ == "__main__":
    instance.main()
