"""A program that is stopped loses its demand, not its life: others get its SMs, and it goes on when it is continued."""

import os
import signal
import subprocess
import time

from tests.system.harness import instance

HALVES = [instance.SMS // 2] * 2
STOPS = 50
DEADLINE_MS = 300  # a busy machine lets a program that obeys be so late
DEPTH = 2
FOR_EVER = ("work", "--iterations", 30, "--blocks", 64, "--count", 1000000, "--depth", DEPTH, "--announce")


class Lease(instance.SystemTest):
    warp_instruction_ns = 10_000

    def seen(self):
        """The clients that have used the GPU, at one moment, by process."""
        return {client["pid"]: client for client in self.call("ListClients")["clients"] if client["usage"]}

    def launches(self, program):
        return self.seen()[program.pid]["usage"][0]["launches"]

    def wait_launches(self, program, number=1, seconds=0):
        """Until the program has ended so many launches more, and so long has passed."""
        least, end = self.launches(program) + number, time.monotonic() + seconds
        instance.wait_until(
            lambda: self.launches(program) >= least and time.monotonic() > end, f"{number} launches in {seconds} s"
        )

    def granted(self, *programs):
        """What each has; together never more than there is."""
        seen = self.seen()
        grants = [seen[program.pid]["usage"][0]["granted"] if program.pid in seen else 0 for program in programs]
        self.assertLessEqual(sum(grants), instance.SMS)
        return grants

    def stop(self, program):
        """Stops a program as on a GPU: the others do not wait for it."""
        watch = instance.DRIVER_PROGRAMS / "sm_watch"
        subprocess.run([watch, self.env["SOFTGPU_TABLE"], "stop", str(program.pid)], check=True)

    def start_both(self, config):
        """Two programs in slices of their own, each with half the SMs, and no block on those of the other.

        The blocks of a stopped program stop too on the software GPU, and keep their places."""
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + config)
        programs = []
        for path in ("a", "b"):
            self.gpuctl("create-slice", path)
            programs.append(self.start_bench(path, *FOR_EVER))
        for program in programs:
            program.wait_started()
        instance.wait_until(lambda: self.granted(*programs) == HALVES, "both to have a half")
        for program in programs:
            self.wait_launches(program, number=DEPTH + 1)
        return programs

    def test_others_go_on_while_a_program_is_stopped(self):
        runs, stopped = self.start_both("lab.lease_ms = 60000\n")
        for _ in range(STOPS):
            self.stop(stopped)
            self.wait_launches(runs)
            os.kill(stopped.pid, signal.SIGCONT)
        for program in (runs, stopped):
            self.assertRightResults(program.stop())

    def test_others_get_what_a_stopped_program_had(self):
        # A program that does not obey is killed at once here; a stopped one is not.
        deadline = f"daemon.evict_deadline_ms = {DEADLINE_MS}\ndaemon.longest_block_task_ms = 1\n"
        config = 'lab.lease_ms = 700\ndaemon.on_disobey = "stop"\n'
        stays, stopped = self.start_both(config + deadline)
        self.stop(stopped)
        instance.wait_until(lambda: self.seen()[stopped.pid]["state"] == "silent", "the stopped program to be missed")
        instance.wait_until(lambda: self.granted(stays, stopped) == [instance.SMS, 0], "the other to have all")
        self.wait_launches(stays, seconds=2 * DEADLINE_MS / 1000)  # to stop a program that disobeys
        os.kill(stopped.pid, signal.SIGCONT)
        instance.wait_until(lambda: self.granted(stays, stopped) == HALVES, "both to have a half again")
        self.wait_launches(stopped)
        for program in (stays, stopped):
            self.assertRightResults(program.stop())
            self.assertEqual(program.err(), "started\n", "the program itself must not notice")


if __name__ == "__main__":
    instance.main()
