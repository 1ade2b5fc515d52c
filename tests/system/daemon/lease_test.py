"""A program that is stopped loses its demand, not its life: others get its SMs, and it goes on when it is continued."""

import os
import signal

from tests.system.harness import instance

LEASE = "lease_ms = 700\n"
FOR_EVER = ("work", "--iterations", 30, "--blocks", 64, "--count", 1000000, "--depth", 2, "--announce")


class Lease(instance.SystemTest):
    warp_instruction_ns = 10_000

    def seen(self):
        """The clients that have used the GPU, at one moment, by process."""
        return {client["pid"]: client for client in self.call("ListClients")["clients"] if client["usage"]}

    def launches(self, program):
        return self.seen()[program.pid]["usage"][0]["launches"]

    def granted(self, *programs):
        """What each has; together never more than there is."""
        seen = self.seen()
        grants = [seen[program.pid]["usage"][0]["granted"] if program.pid in seen else 0 for program in programs]
        self.assertLessEqual(sum(grants), instance.SMS)
        return grants

    def test_others_get_what_a_stopped_program_had(self):
        # A program that does not obey is killed at once here; a stopped one is not.
        config = LEASE + 'on_disobey = "stop"\nevict_deadline_ms = 50\nlongest_block_task_ms = 1\n'
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + config)
        for path in ("a", "b"):
            self.gpuctl("create-slice", path)
        stays = self.start_bench("a", *FOR_EVER)
        stopped = self.start_bench("b", *FOR_EVER)
        for program in (stays, stopped):
            program.wait_started()
        half = instance.SMS // 2
        instance.wait_until(lambda: self.granted(stays, stopped) == [half, half], "both to have a half")
        os.kill(stopped.pid, signal.SIGSTOP)
        instance.wait_until(lambda: self.seen()[stopped.pid]["state"] == "silent", "the stopped program to be missed")
        instance.wait_until(lambda: self.granted(stays, stopped) == [instance.SMS, 0], "the other to have all")
        before = self.launches(stays)
        instance.wait_until(lambda: self.launches(stays) > before, "the other to go on")
        os.kill(stopped.pid, signal.SIGCONT)
        instance.wait_until(lambda: self.granted(stays, stopped) == [half, half], "both to have a half again")
        before = self.launches(stopped)
        instance.wait_until(lambda: self.launches(stopped) > before, "the stopped program to go on")
        for program in (stays, stopped):
            self.assertRightResults(program.stop())
            self.assertEqual(program.err(), "started\n", "the program itself must not notice")


if __name__ == "__main__":
    instance.main()
