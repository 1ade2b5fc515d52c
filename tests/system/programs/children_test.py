"""gpuctl run leaves a program as it is - arguments, environment, exit status, signals - and covers its children."""

import re
import signal

from tests.system.harness import instance


class Children(instance.SystemTest):
    warp_instruction_ns = 2000

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def test_children_of_a_shell_are_clients(self):
        bench = f"{instance.BENCH} run vectorAdd --count 1000000 --json"
        shell = self.start_in("s", "sh", "-c", f"{bench} & {bench} & wait")
        pids = instance.wait_until(self.two_busy_clients, "two clients with launches")
        self.assertNotIn(shell.pid, pids)
        for pid in pids:
            instance.os.kill(pid, signal.SIGTERM)
        self.assertEqual(shell.wait(), 0)
        reports = [instance.json.loads(line) for line in shell.out().splitlines()]
        self.assertEqual(len(reports), 2)
        for report in reports:
            self.assertRightResults(report)
        instance.wait_until(lambda: not self.clients("s"), "the clients to be gone")

    def two_busy_clients(self):
        pids = [
            client["pid"] for client in self.clients("s") if any(usage["launches"] > 3 for usage in client["usage"])
        ]
        return pids if len(pids) == 2 else None

    def test_arguments_and_environment(self):
        self.env["EXAMPLE"] = "kept as it is"
        program = self.start_in("s", "sh", "-c", 'printf "%s|" "$0" "$@" "$EXAMPLE"', "a b", "--slice", "x", "", "*")
        self.assertEqual(program.wait(), 0, program.err())
        self.assertEqual(program.out(), "a b|--slice|x||*|kept as it is|")

    def test_exit_status(self):
        for status in (0, 1, 3, 77, 255):
            self.assertEqual(self.start_in("s", "sh", "-c", f"exit {status}").wait(), status)

    def test_signals_reach_the_program(self):
        program = self.start_in(
            "s", "sh", "-c", "trap 'echo got TERM; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
        )
        instance.wait_until(lambda: "ready" in program.out(), "the shell")
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(), 9)
        self.assertIn("got TERM", program.out())

    def test_killed_by_a_signal(self):
        env = self.env_with_sanitizer_option("handle_segv=0")  # the signal is the shell's own
        self.assertEqual(self.start_in("s", "sh", "-c", "kill -SEGV $$", env=env).wait(), -signal.SIGSEGV)

    def test_a_child_waits_for_nothing_that_another_thread_was_making(self):
        self.gpuctl("set", "s", "max=4")
        program = self.start_in("s", instance.DRIVER_PROGRAMS / "fork_at_allocation")
        self.assertEqual(program.wait(), 0, program.out() + program.err())
        forks = re.search(r"(\d+) forks, 0 hang", program.out())
        self.assertGreater(int(forks[1]), 20)

    def test_command_not_found(self):
        program = self.start_in("s", "/nonexistent/program")
        self.assertEqual(program.wait(), 127)
        self.assertEqual(len(program.err().splitlines()), 1, program.err())
        self.assertIn("/nonexistent/program", program.err())


if __name__ == "__main__":
    instance.main()
