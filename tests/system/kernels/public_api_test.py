"""What <gpuslice/gpuslice.h> offers a program that is linked with -lgpuslice and started without gpuctl run."""

from tests.system.harness import instance, slice_shell

OK, INVALID, NOT_ATTACHED, REFUSED, NO_DAEMON, NO_MEMORY = range(0, -6, -1)


class PublicApi(instance.SystemTest):
    def start_shell(self, **environment):
        return slice_shell.SliceShell(self, **environment)

    def test_attach_first(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--max", 5)
        shell = self.start_shell()
        self.assertEqual(shell.code("attach", "ls"), OK)
        self.assertEqual(shell.ask("slice", 3), "0 ls")
        self.assertEqual(shell.code("grant", 0), NOT_ATTACHED)  # cuInit attaches
        shell.do("init")
        self.assertEqual([client["pid"] for client in self.clients("ls")], [shell.pid])
        self.assertEqual(shell.code("grant", 0), OK)

    def test_grant_follows_the_slice(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--max", 5)
        shell = self.start_shell(GPUCTL_SLICE="ls")
        shell.do("init")
        shell.do("launch", 0, *slice_shell.LONG)
        for most in (5, 2, 7):
            self.gpuctl("set", "ls", f"max={most}")
            instance.wait_until(
                lambda: shell.grant()[:4] == (OK, most, instance.SMS, most),
                f"a grant of {most}, demand for all and {most} held; now {shell.grant()}",
            )
        shell.do("finish")
        instance.wait_until(lambda: shell.grant().demand == 0, "no demand")

    def test_moving_to_another_slice(self):
        self.start_daemon()
        self.gpuctl("create-slice", "one", "--max", 5)
        self.gpuctl("create-slice", "two", "--max", 2)
        shell = self.start_shell(GPUCTL_SLICE="one")
        shell.do("init")
        shell.do("launch", 0, *slice_shell.LONG)
        instance.wait_until(lambda: shell.grant().holding == 5, "SMs of the first slice")
        self.assertEqual(shell.code("attach", "two"), OK)
        self.assertEqual(shell.ask("slice", 100), "0 two")
        instance.wait_until(lambda: shell.grant().holding == 2, "SMs of the second slice")
        instance.wait_until(lambda: not self.clients("one"), "the first slice to be left")
        self.assertEqual([client["pid"] for client in self.clients("two")], [shell.pid])
        shell.finish(0)

    def test_priority_hint(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("set", "s", "priority=7")
        shell = self.start_shell(GPUCTL_SLICE="s")
        self.assertEqual(shell.code("hint", 3), NOT_ATTACHED)
        shell.do("init")
        instance.wait_until(lambda: shell.grant().priority == 7, "the slice's priority")
        self.assertEqual(shell.code("hint", 3), OK)
        instance.wait_until(lambda: shell.grant().priority == 3, "the priority asked for")
        self.assertEqual(shell.code("hint", 8), REFUSED)
        self.assertEqual(shell.grant().priority, 3)

    def test_the_daemon_names_the_slice(self):
        """A program that asks for a daemon only is in its root."""
        self.start_daemon()
        self.gpuctl("create-slice", "ls")
        shell = self.start_shell()
        self.assertEqual(shell.code("slice", 100), NOT_ATTACHED)
        shell.do("init")
        self.assertEqual([client["pid"] for client in self.clients("/")], [shell.pid])
        self.assertEqual(shell.ask("slice", 2), "0 /")
        self.assertEqual(shell.code("attach", "ls"), OK)
        self.assertEqual(shell.ask("slice", 100), "0 ls")

    def test_wrong_arguments(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls")
        shell = self.start_shell(GPUCTL_SLICE="ls")
        self.assertEqual(shell.code("grant", 0), NOT_ATTACHED)
        self.assertEqual(shell.code("critical", 0, 1), NOT_ATTACHED)
        shell.do("init")
        for command in (
            ("attach-null",),
            ("attach",),
            ("slice", 0),
            ("slice", 2),
            ("grant", -1),
            ("grant", 1),
            ("grant", 999),
            ("grant-null",),
        ):
            with self.subTest(command):
                self.assertEqual(shell.code(*command), INVALID)
        self.assertEqual(shell.ask("slice", 3), "0 ls")
        texts = {shell.ask("text", code) for code in (OK, INVALID, NOT_ATTACHED, REFUSED, NO_DAEMON, NO_MEMORY, -99)}
        self.assertEqual(len(texts), 7)

    def test_slice_that_does_not_exist(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls")
        shell = self.start_shell(GPUCTL_SLICE="ls")
        shell.do("init")
        self.assertEqual(shell.code("attach", "nope"), REFUSED)
        self.assertEqual(shell.ask("slice", 3), "0 ls")
        instance.wait_until(
            lambda: [client["pid"] for client in self.clients("ls")] == [shell.pid],
            "the program to be in its slice again",
        )
        shell.do("launch", 0, 100, 1)
        shell.do("finish")

    def test_no_daemon(self):
        shell = self.start_shell(GPUCTL_SLICE="ls")
        shell.do("init")
        self.assertEqual(shell.code("attach", "other"), NO_DAEMON)
        self.assertEqual(shell.code("grant", 0), NOT_ATTACHED)
        shell.do("launch", 0, 100, 1)  # what it is for goes on
        shell.do("finish")
        self.assertEqual([record.runs for record in shell.records(0)], [1] * 100)

    def test_streams_share_the_grant(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        shell = self.start_shell(GPUCTL_SLICE="s")
        shell.do("init")
        for stream in (0, 1):
            shell.do("launch", stream, *slice_shell.LONG)
        for most in (8, 3, 6):  # the streams divide what is granted in the middle of their kernels too
            self.gpuctl("set", "s", f"max={most}")
            half = (most + 1) // 2
            shell.wait_running_on(set(range(half)), set(range(half, most)))
        shell.finish(0, 1)

    def test_latency_critical_stream_is_served_first(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        shell = self.start_shell(GPUCTL_SLICE="s")
        shell.do("init")
        self.assertEqual(shell.code("critical", 1, 1), OK)
        for stream in (0, 1):
            shell.do("launch", stream, *slice_shell.LONG)
        # It gets all SMs; one of them it may share with the other stream.
        shell.wait_running_on(set(), set(range(1, instance.SMS)), tolerated={0})
        shell.finish(0, 1)
        self.assertEqual(shell.code("critical", 1, 0), OK)
        for stream in (0, 1):
            shell.do("launch", stream, *slice_shell.LONG)
        shell.wait_running_on({0, 1, 2, 3}, {4, 5, 6, 7})
        shell.finish(0, 1)


if __name__ == "__main__":
    instance.main()
