"""Streams of one program as jobs of their own: which goes first, and that none waits for ever."""

import time

from tests.system.harness import instance, slice_shell

ALL = set(range(instance.SMS))
SHORT = (800, 200)  # blocks as in slice_shell.LONG, a quarter of a second of them
OK, INVALID = 0, -1


class StreamJobs(instance.SystemTest):
    def start(self, policy, *priorities):
        """A program with two streams, below a slice that has this policy."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("set", "/", f"policy={policy}")
        shell = slice_shell.SliceShell(self, GPUCTL_SLICE="s")
        shell.do("init", *priorities)
        return shell

    def test_the_stream_of_greater_cuda_priority_goes_first(self):
        shell = self.start("hpf:streams", 0, -5)
        shell.do("launch", 0, *slice_shell.LONG)
        shell.wait_running_on(ALL)
        shell.do("launch", 1, *slice_shell.LONG)
        shell.wait_running_on(set(), ALL)
        self.assertEqual(
            sorted((job["stream"], job["priority"], job["state"]) for job in self.usage("s", shell.pid)["streams"]),
            [(1, 0, "evicted"), (2, 5, "running")],
        )
        self.assertIn("running (stream 2)", self.gpuctl("show", "s").stdout)
        explained = self.gpuctl("explain", shell.pid).stdout
        self.assertIn("stream 1 on GPU 0: evicted, priority 0 in its program\n", explained)
        self.gpuctl("set", "/", "policy=share")  # the change takes effect in the middle of both kernels
        shell.wait_running_on({0, 1, 2, 3}, {4, 5, 6, 7})
        shell.finish(0, 1)

    def test_without_the_option_streams_share_the_grant(self):
        shell = self.start("srt", 0, -5)
        for stream in (0, 1):
            shell.do("launch", stream, *slice_shell.LONG)
        shell.wait_running_on({0, 1, 2, 3}, {4, 5, 6, 7})
        shell.finish(0, 1)

    def test_the_program_names_the_level_of_a_stream(self):
        shell = self.start("piv:streams")
        self.assertEqual(shell.code("level", 0, 1001), INVALID)
        self.assertEqual(shell.code("level", 0, 7), OK)
        for stream in (1, 0):
            shell.do("launch", stream, *slice_shell.LONG)
        shell.wait_running_on(ALL, set())
        shell.finish(0, 1)

    def test_the_shorter_stream_goes_first(self):
        shell = self.start("srt:streams")
        shell.do("launch", 0, *SHORT)  # so that its block-tasks are known
        instance.wait_until(lambda: len(shell.records(0)) == SHORT[0], "the kernel to end")
        shell.do("launch", 0, *slice_shell.LONG)
        shell.wait_running_on(ALL)
        shell.do("launch", 1, *SHORT)
        instance.wait_until(lambda: len(shell.records(1)) == SHORT[0], "the short kernel to end")
        begun = sorted(record.start_ns for record in shell.records(1))
        # From a tenth of it on, the other stream has left.
        first, last = begun[SHORT[0] // 10], begun[-1]
        between = [r for r in shell.records(0) if first < r.start_ns < last]
        self.assertLess(len(between), SHORT[0] // 20, "blocks of the long kernel beside the short one")
        shell.wait_running_on(ALL)
        shell.finish(0)

    def test_a_launch_in_original_form_waits_for_the_other_stream_but_not_for_ever(self):
        shell = self.start("hpf:streams", 0, -5)
        shell.do("opaque", 1)  # loaded while nothing runs
        shell.do("launch", 0, 8, 1)
        instance.wait_until(lambda: len(shell.records(0)) == 8, "a launch that waits for nobody")
        shell.do("opaque", 0)
        shell.do("launch", 1, *slice_shell.LONG)
        instance.wait_until(lambda: shell.records(1), "the first kernel to begin")
        shell.do("opaque", 1)
        began = time.monotonic()
        shell.do("launch-aside", 0, 8, 1)
        instance.wait_until(lambda: shell.code("asides") == 1, "the launch call to return")
        self.assertGreater(time.monotonic() - began, 1)
        self.assertLess(len(shell.records(1)), slice_shell.LONG[0], "the first kernel goes on")
        shell.finish(1)
        self.assertEqual(len(shell.records(0)), 8)

    def test_a_stream_that_waits_for_another_holds_it_not(self):
        shell = self.start("hpf:streams", 0, -5)
        shell.do("launch", 0, *SHORT)
        shell.do("await", 1, 0)
        shell.do("launch", 1, *SHORT)
        for stream in (0, 1):
            instance.wait_until(lambda s=stream: len(shell.records(s)) == SHORT[0], f"all of stream {stream}")
        last = max(record.start_ns for record in shell.records(0))
        self.assertGreater(min(record.start_ns for record in shell.records(1)), last)

    def test_a_kernel_that_waits_for_the_host_holds_no_other_for_ever(self):
        """The host lets the kernel of greater priority go on only once the other stream's kernel has ended."""
        shell = self.start("hpf:streams", 0, -5)
        shell.do("spin", 1)
        shell.do("launch", 0, *SHORT)
        instance.wait_until(lambda: len(shell.records(0)) == SHORT[0], "the other stream's kernel")
        shell.do("go")
        shell.do("launch", 1, 8, 1)
        instance.wait_until(lambda: len(shell.records(1)) == 8, "what is behind the kernel that waited")

    def test_streams_of_two_programs(self):
        """The slice's priority comes first, then the stream's."""
        one = self.start("hpf:streams", 0, -5)
        self.gpuctl("create-slice", "first", "--priority", 10)
        other = slice_shell.SliceShell(self, GPUCTL_SLICE="first")
        other.do("init")
        for stream in (0, 1):
            one.do("launch", stream, *slice_shell.LONG)
        one.wait_running_on(set(), ALL)
        other.do("launch", 0, *slice_shell.LONG)
        one.wait_running_on(set(), set())
        other.wait_running_on(ALL)
        other.finish(0)
        one.wait_running_on(set(), ALL)
        one.finish(0, 1)


if __name__ == "__main__":
    instance.main()
