#!/usr/bin/env python3
"""A program that is stopped loses its demand, not its life: others get its SMs, and it goes on when it is continued."""

import os
import signal

import instance

LEASE = "lease_ms = 700\n"
FOR_EVER = ("work", "--iterations", 30, "--blocks", 64, "--count", 1000000, "--depth", 2, "--announce")


class Lease(instance.SystemTest):
    warp_instruction_ns = 10_000

    def usage_of(self, program):
        return self.usage("/", program.pid) or {"granted": 0, "launches": 0}

    def state_of(self, program):
        return next((client["state"] for client in self.clients("/") if client["pid"] == program.pid), None)

    def granted(self, *programs):
        """What each has at one moment; together never more than there is."""
        usage = {client["pid"]: client["usage"][0] for client in self.clients("/") if client["usage"]}
        grants = [usage[program.pid]["granted"] if program.pid in usage else 0 for program in programs]
        self.assertLessEqual(sum(grants), instance.SMS)
        return grants

    def test_others_get_what_a_stopped_program_had(self):
        # A program that does not obey is killed at once here; a stopped one is not.
        config = LEASE + 'on_disobey = "stop"\nevict_deadline_ms = 50\nlongest_block_task_ms = 1\n'
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + config)
        stays = self.start_bench("/", *FOR_EVER)
        stopped = self.start_bench("/", *FOR_EVER)
        for program in (stays, stopped):
            program.wait_started()
        half = instance.SMS // 2
        instance.wait_until(lambda: self.granted(stays, stopped) == [half, half], "both to have a half")
        os.kill(stopped.pid, signal.SIGSTOP)
        instance.wait_until(lambda: self.state_of(stopped) == "silent", "the stopped program to be missed")
        instance.wait_until(lambda: self.granted(stays, stopped) == [instance.SMS, 0], "the other to have all")
        before = self.usage_of(stays)["launches"]
        instance.wait_until(lambda: self.usage_of(stays)["launches"] > before, "the other to go on")
        os.kill(stopped.pid, signal.SIGCONT)
        instance.wait_until(lambda: self.granted(stays, stopped) == [half, half], "both to have a half again")
        before = self.usage_of(stopped)["launches"]
        instance.wait_until(lambda: self.usage_of(stopped)["launches"] > before, "the stopped program to go on")
        for program in (stays, stopped):
            self.assertRightResults(program.stop())
            self.assertEqual(program.err(), "started\n", "the program itself must not notice")


if __name__ == "__main__":
    instance.main()
