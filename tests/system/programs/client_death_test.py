"""A client dies by SIGKILL in the middle of a kernel: its grant is free at once, and others go on with it."""

from tests.system.harness import instance

BATCH = ("work", "--blocks", 20000, "--iterations", 10, "--count", 100, "--warmup", 0, "--announce")
DEATHS = 5
# So long gpuctld would wait for one that lives and does not leave. Nobody waits for one that is dead.
DEADLINE = instance.ALWAYS_REWRITTEN + "daemon.evict_deadline_ms = 60000\n"
MUCH_LESS_S = 20


class ClientDeath(instance.SystemTest):
    def test_grant_is_back_at_once(self):
        self.start_daemon(config=DEADLINE)
        self.gpuctl("create-slice", "a")
        self.gpuctl("create-slice", "b")
        survivor = self.start_bench(
            "b", "work", "--blocks", 2048, "--iterations", 10, "--count", 1000000, "--depth", 2, "--announce"
        )
        survivor.wait_started()
        for _ in range(DEATHS):
            victim = self.start_bench("a", *BATCH)
            victim.wait_started()
            instance.wait_until(lambda: (self.usage("a", victim.pid) or {}).get("holding", 0) > 0, "the victim to run")
            instance.wait_until(lambda: self.granted(survivor) < instance.SMS, "the survivor to give SMs up")
            victim.process.kill()
            instance.wait_until(lambda: self.granted(survivor) == instance.SMS, "the grant to come back", MUCH_LESS_S)
            self.assertEqual(self.clients("a"), [])
            instance.wait_until(
                lambda: self.usage("b", survivor.pid)["holding"] == instance.SMS, "the survivor to hold the freed SMs"
            )
        self.assertRightResults(survivor.stop())

    def granted(self, client):
        return self.usage("b", client.pid)["granted"]


if __name__ == "__main__":
    instance.main()
