"""gpuctld dies by SIGKILL and comes back: slices are there again, clients reattach by themselves, no result is
wrong."""

from tests.system.harness import instance


class DaemonRestart(instance.SystemTest):
    warp_instruction_ns = 10_000

    def test_killed_and_restarted_three_times(self):
        daemon = self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-hold", "250ms")
        self.gpuctl("create-slice", "batch", "--max", 5, "--weight", 30)
        slices = self.slices()
        batch = self.start_bench(
            "batch", "work", "--blocks", 512, "--iterations", 30, "--count", 1000000, "--depth", 2, "--announce"
        )
        ls = self.start_bench(
            "ls", "matrixMul", "--count", 1000000, "--arrival", "poisson", "--period-us", 30000, "--announce"
        )
        batch.wait_started()
        ls.wait_started()
        for _ in range(3):
            before = self.launches("ls", ls)
            daemon.kill()
            self.assertIsNone(batch.process.poll(), batch.err())
            daemon = self.start_daemon()
            self.assertEqual(self.slices(), slices)
            instance.wait_until(lambda: self.usage("ls", ls.pid), "LS to reattach")
            instance.wait_until(lambda: self.usage("batch", batch.pid), "batch to reattach")
            instance.wait_until(lambda: self.launches("ls", ls) > before, "LS to go on")
            self.gpuctl("set", "batch", "max=3")  # the new daemon's decisions reach the old clients
            instance.wait_until(lambda: self.usage("batch", batch.pid)["holding"] in (1, 2, 3), "batch to shrink")
            self.gpuctl("set", "batch", "max=5")
        for client in (ls, batch):
            self.assertRightResults(client.stop())
            self.assertEqual(client.err(), "started\n", "the program itself must not notice")

    def slices(self):
        kept = (
            "path",
            "reserve",
            "reserve_mode",
            "reserve_hold_ms",
            "max",
            "weight",
            "priority",
            "policy",
            "owner_uid",
            "owner_gid",
        )
        return [{key: node.get(key) for key in kept} for node in self.call("ListSlices")["slices"]]

    def launches(self, slice_path, client):
        return (self.usage(slice_path, client.pid) or {"launches": 0})["launches"]


if __name__ == "__main__":
    instance.main()
