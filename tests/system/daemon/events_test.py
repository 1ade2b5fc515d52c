"""gpuctl events: who follows is told as it happens what changed, which programs came and went, and whether a target is
met."""

import json

from tests.system.harness import instance

NEVER, ALWAYS = "10us", "3600s"  # shorter than any burst here, and longer


class Events(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon(config="")

    def follow(self, *slices):
        return self.start(instance.GPUCTL, "events", "--follow", *slices)

    def wait_for(self, follows, *parts):
        """Until there are lines with these parts, in this order."""

        def found():
            at = 0
            for line in follows.out().splitlines():
                at += at < len(parts) and parts[at] in line
            return at == len(parts)

        instance.wait_until(found, f"lines with {parts}", told=follows.out)

    def test_a_program_by_its_own_name_from_its_start_to_its_end(self):
        follows = self.follow()
        self.gpuctl("create-slice", "s", "--max", 4)
        self.gpuctl("set", "s", "max=2", "weight=7")
        program = self.start_bench("s", "work", "--blocks", 8, "--seconds", 600, "--arrival", "periodic", "--announce")
        program.wait_started()
        self.wait_for(
            follows,
            *("created    s             by root: max 4", "changed    s ", f"joined     s             {program.pid} "),
        )
        self.gpuctl("kill", program.pid)
        self.gpuctl("delete-slice", "nowhere", check=False)
        self.wait_for(follows, f"killed     s             {program.pid} ", f"left       s             {program.pid} ")
        self.wait_for(follows, "max 4 -> 2, weight 100 -> 7", "refused    nowhere ")
        lines = [line for line in follows.out().splitlines() if f" {program.pid} " in line]
        self.assertTrue(all("gpuslice-bench run work" in line for line in lines), lines)
        self.assertTrue(all("gpuctl run" not in line for line in lines), lines)
        told = json.loads(self.gpuctl("events", "s", "--json").stdout)
        kinds = [event["kind"] for event in told["events"]]
        self.assertEqual(kinds, ["created", "changed", "joined", "killed", "left"])
        self.assertEqual(told["lost"], 0)

    def test_a_target_that_is_met_and_then_missed(self):
        self.gpuctl("create-slice", "ls", "--latency", ALWAYS)
        self.gpuctl("create-slice", "batch")
        follows = self.follow("ls")
        ls = self.start_bench(
            *("ls", "work", "--blocks", 2, "--iterations", 10, "--count", 1000000, "--announce"),
            *("--arrival", "periodic", "--period-us", 5000),
        )
        batch = self.start_bench(
            *("batch", "work", "--blocks", 64, "--iterations", 100, "--count", 1000000, "--depth", 2, "--announce")
        )
        ls.wait_started()
        batch.wait_started()
        self.wait_for(follows, "met        ls            GPU 0: ")
        self.gpuctl("set", "ls", f"latency={NEVER}")
        self.wait_for(follows, "met ", "changed    ls ", "missed     ls            GPU 0: ")
        self.assertNotIn("batch", follows.out())
        self.assertIn("slice ls misses its target of latency on GPU 0", self.daemon.err())
        self.assertRightResults(ls.stop())
        self.assertRightResults(batch.stop())


if __name__ == "__main__":
    instance.main()
