"""A program that gives SMs back too late, because its thread blocks take too long: reported or killed, as told."""

import signal

from tests.system.harness import instance

DEADLINE = "daemon.evict_deadline_ms = 50\ndaemon.longest_block_task_ms = 1\n"
# A thread block takes some 3 s.
FOR_EVER = "work --iterations 30000 --blocks 400 --warmup 0 --seconds 600 --check none --announce".split()


class Disobey(instance.SystemTest):
    def keep_all_sms(self, config):
        """A program that holds all SMs, and another one that was promised some of them."""
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + DEADLINE + config)
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "ls", "--reserve", 4)
        batch = self.start_bench("batch", *FOR_EVER)
        batch.wait_started()
        holding = lambda: (self.usage("batch", batch.pid) or {}).get("holding") == instance.SMS  # noqa: E731
        instance.wait_until(holding, "batch to have all SMs")
        ls = self.start_bench("ls", "work", "--count", 3)
        return batch, ls

    def state_of(self, program):
        return next((client["state"] for client in self.clients("batch") if client["pid"] == program.pid), None)

    def test_reported(self):
        batch, ls = self.keep_all_sms('daemon.on_disobey = "report"\n')
        instance.wait_until(lambda: self.state_of(batch) == "disobeying", "batch to be reported")
        granted = lambda: (self.usage("ls", ls.pid) or {}).get("granted", 0) >= 4  # noqa: E731
        instance.wait_until(granted, "ls to be granted what it was promised")
        self.assertIsNone(batch.process.poll())
        (told,) = [event for event in self.gpuctl_json("events")["events"] if event["kind"] == "disobeyed"]
        self.assertEqual((told["slice"], told["pid"]), ("batch", batch.pid))
        instance.wait_until(lambda: self.state_of(batch) == "running", "batch to obey again")
        self.assertRightResults(ls.report())

    def test_stopped(self):
        batch, ls = self.keep_all_sms('daemon.on_disobey = "stop"\n')
        self.assertEqual(batch.wait(), -signal.SIGKILL)
        self.assertRightResults(ls.report())
        instance.wait_until(lambda: not self.clients("batch"), "batch to be forgotten")
        self.assertIn(str(batch.pid), self.daemon.err())


if __name__ == "__main__":
    instance.main()
