"""A reserve in mode active, which is the default: kept while its slice is active, between its launches too, and lent
when it is not."""

from tests.system.harness import instance

RESERVE = 2
REST = instance.SMS - RESERVE


class ActiveReserve(instance.SystemTest):
    def test_a_reserve_is_kept_while_its_slice_is_active_and_else_lent(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", RESERVE)
        self.assertEqual(
            [self.slice()[key] for key in ("reserve", "reserve_mode", "reserve_hold_ms")], [RESERVE, "active", 100]
        )
        self.gpuctl("create-slice", "batch")
        self.batch = self.start_bench(
            "batch", "work", "--blocks", 2048, "--iterations", 10, "--count", 1000000, "--depth", 2, "--announce"
        )
        self.batch.wait_started()
        self.wait_batch(instance.SMS)

        # Launches to warm up, and then nothing for a long time.
        self.gpuctl("set", "ls", "reserve-hold=600s")
        pausing = self.start_bench(
            "ls",
            "work",
            "--blocks",
            RESERVE,
            "--iterations",
            10,
            "--arrival",
            "periodic",
            "--period-us",
            600_000_000,
            "--count",
            2,
            "--announce",
        )
        pausing.wait_started()
        self.wait_batch(REST)
        instance.wait_until(lambda: self.is_idle(pausing), "the launches to end")
        instance.wait_until(
            lambda: self.usage("batch", self.batch.pid)["holding"] <= REST, "batch to leave the reserve"
        )
        self.assertTrue(self.is_idle(pausing))
        self.assertEqual(self.usage("ls", pausing.pid)["granted"], RESERVE)

        self.gpuctl("set", "ls", "reserve-hold=20ms")
        self.wait_batch(instance.SMS)
        self.assertEqual(self.usage("ls", pausing.pid)["granted"], 0)
        pausing.kill()

        working = self.start_bench(
            "ls", "work", "--blocks", RESERVE, "--iterations", 200, "--count", 1000000, "--depth", 2, "--announce"
        )
        working.wait_started()
        self.wait_batch(REST)
        self.assertRightResults(working.stop())
        self.wait_batch(instance.SMS)
        self.assertRightResults(self.batch.stop())

    def test_bad_values_give_one_line(self):
        self.start_daemon()
        for option, value in (
            ("--reserve-mode", "activ"),
            ("--reserve-hold", "100"),
            ("--reserve-hold", "0ms"),
            ("--reserve-hold", "2h"),
        ):
            done = self.gpuctl("create-slice", "ls", "--reserve", RESERVE, option, value, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(option, done.stderr)
        self.gpuctl("create-slice", "ls", "--reserve", RESERVE, "--reserve-mode", "strict", "--reserve-hold", "1.5s")
        self.assertIn("2 SMs, kept free\n", self.gpuctl("show", "ls").stdout)
        self.gpuctl("set", "ls", "reserve-mode=active")
        self.assertIn("2 SMs, kept free while active and 1.5 s longer", self.gpuctl("show", "ls").stdout)

    def slice(self):
        return self.call("GetSlice", path="ls")["slice"]

    def is_idle(self, client):
        usage = self.usage("ls", client.pid)
        return usage and usage["demand"] == usage["outstanding"] == 0

    def wait_batch(self, sms):
        instance.wait_until(
            lambda: (self.usage("batch", self.batch.pid) or {}).get("granted") == sms,
            f"batch to be granted {sms} SMs; now: {self.usage('batch', self.batch.pid)}",
        )


if __name__ == "__main__":
    instance.main()
