"""gpuctl set shrinks a kernel while it runs, and grows it again: SMs change hands, the kernel and its result do not.
And what nobody demands is for those who have something to run."""

from tests.system.harness import instance


class Resize(instance.SystemTest):
    def test_one_kernel_shrinks_and_grows(self):
        self.start_daemon()
        self.gpuctl("create-slice", "batch")
        # Hundreds of waves of block-tasks of some milliseconds: one launch that takes long enough for all that follows.
        client = self.start_bench(
            "batch",
            "work",
            "--blocks",
            20000 * instance.SLOWER,
            "--iterations",
            10,
            "--count",
            1,
            "--warmup",
            0,
            "--announce",
        )
        client.wait_started()
        self.wait_holding(client, instance.SMS)
        first = self.usage("batch", client.pid)
        self.gpuctl("set", "batch", "max=2")
        self.wait_holding(client, 2)
        self.gpuctl("set", "batch", "max=5")
        self.wait_holding(client, 5)
        self.gpuctl("set", "batch", "max=none")
        self.wait_holding(client, instance.SMS)
        last = self.usage("batch", client.pid)
        self.assertEqual(last["outstanding"], 1, "the kernel had ended before it was grown")
        self.assertEqual(last["launches"], first["launches"])
        self.assertGreaterEqual(last["evictions"], first["evictions"] + 1)
        self.assertRightResults(client.report())

    def test_a_kernel_of_few_blocks_has_what_an_idle_program_leaves(self):
        self.start_daemon()
        for path in ("one", "idle"):
            self.gpuctl("create-slice", path)
        self.start_idle_in("idle")
        client = self.start_bench("one", "work", "--blocks", 4, "--iterations", 200, "--seconds", 20, "--announce")
        client.wait_started()
        instance.wait_until(
            lambda: (self.usage("one", client.pid) or {}).get("granted") == instance.SMS,
            f"all SMs; now: {self.usage('one', client.pid)}",
        )
        self.assertLess(self.usage("one", client.pid)["demand"], instance.SMS / 2)
        client.process.terminate()
        self.assertRightResults(client.report())

    def wait_holding(self, client, sms):
        instance.wait_until(
            lambda: (self.usage("batch", client.pid) or {}).get("holding") == sms,
            f"the client to hold {sms} SMs; now: {self.usage('batch', client.pid)}",
        )


if __name__ == "__main__":
    instance.main()
