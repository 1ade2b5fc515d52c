"""A slice confines its programs to whole SMs: blocks say on which one they ran, while the slice's maximum is moved
under one running kernel. (%smid counts the SMs of a process by itself, so a grant of 3 is those numbered 0 to 2.)"""

import time

from tests.system.harness import instance, slice_shell

MOST = 3
MOST_SHARED = 227 * 1024  # bytes of shared memory that a block may have
ALL = set(range(instance.SMS))
CAPTURE_MS = 100  # in which workers are added
SOME_BLOCKS_S = 0.5  # for hundreds of blocks


class Confine(instance.SystemTest):
    def test_blocks_stay_on_the_granted_sms(self):
        self.launch_long()
        few_from_the_start = self.hold(MOST)
        self.gpuctl("set", "batch", "max=none")
        all_after_growing = self.hold(instance.SMS)
        self.gpuctl("set", "batch", f"max={MOST}")
        few_after_shrinking = self.hold(MOST)
        kernels = self.kernels_of(self.shell)
        self.assertEqual([(kernel["name"], kernel["form"]) for kernel in kernels], [("record", "persistent")], kernels)
        self.shell.finish(0)

        records = self.shell.records(0)
        first = min(record.start_ns for record in records)
        self.assertLess(first, few_from_the_start[1], "the clock of the kernel is the test's")
        for (start, end), expected in (
            (few_from_the_start, set(range(MOST))),
            (all_after_growing, ALL),
            (few_after_shrinking, set(range(MOST))),
        ):
            with self.subTest(SMs=len(expected)):
                self.assertEqual({record.sm for record in records if start <= record.start_ns < end}, expected)
        # Nor at the very start: a worker on another SM leaves before it claims anything.
        self.assertLessEqual(
            {record.sm for record in records if record.start_ns < few_from_the_start[1]}, set(range(MOST))
        )

    def test_a_running_kernel_may_have_all_shared_memory(self):
        """The program asks for all that a block can have, which its persistent form cannot have beside its own."""
        self.launch_long()
        self.hold(MOST)
        self.shell.do("shared", MOST_SHARED)
        self.gpuctl("set", "batch", "max=none")
        self.hold(instance.SMS)
        self.shell.do("finish")
        (kernel,) = self.kernels_of(self.shell, "record")
        self.assertEqual((kernel["form"], kernel["reason"]), ("persistent", "all constructs understood"))

    def test_a_capture_goes_on_while_a_kernel_grows(self):
        """Whatever the agent asks the driver meanwhile."""
        self.launch_long()
        self.hold(MOST)
        for most in (instance.SMS, MOST) * 3:
            self.gpuctl("set", "batch", f"max={most}")
            self.assertEqual(self.shell.code("capture", 1, CAPTURE_MS), 0)
        self.shell.finish(0)

    def launch_long(self):
        self.start_daemon()
        self.gpuctl("create-slice", "batch", "--max", MOST)
        # Linked with the library and started with it preloaded: it is there once.
        self.shell = slice_shell.SliceShell(self, [instance.GPUCTL, "run", "--slice", "batch"])
        self.shell.do("init")
        self.shell.do("launch", 0, *slice_shell.LONG)

    def hold(self, sms):
        """Waits until the kernel holds so many SMs and lets it run for a while, and until blocks have begun on each.
        Returns the span of time of that."""

        def usage():
            return self.usage("batch", self.shell.pid) or {}

        instance.wait_until(lambda: usage().get("holding") == sms, f"the kernel to hold {sms} SMs; now {usage()}")
        start = time.monotonic_ns()
        time.sleep(SOME_BLOCKS_S)

        def begun_on():
            return {record.sm for record in self.shell.records(0) if record.start_ns >= start}

        instance.wait_until(lambda: begun_on() >= set(range(sms)), "blocks on each SM", told=begun_on)
        self.assertEqual(usage()["outstanding"], 1, "the kernel has ended: it was too short for this test")
        return start, time.monotonic_ns()


if __name__ == "__main__":
    instance.main()
