"""Kernels keep their original form while nothing in force needs them to give SMs back, and get the other one, live,
when something does; a slice's priority is that of its programs' streams."""

import re

from tests.system.harness import instance

LONG = ("work", "--blocks", 64, "--iterations", 20, "--seconds", 40)
NO_SHORT_ONES = "lab.latency_target_us = 1\n"


class InForce(instance.SystemTest):
    def in_force(self, slice_path, program):
        usage = self.usage(slice_path, program.pid)
        return usage and usage["in_force"]

    def launches_in(self, slice_path, program, more=3):
        """Waits for some more launches; how many block-tasks of rewritten kernels were done meanwhile."""

        def launched():  # `gpuctl run` is a client for a moment too, with none
            usage = self.usage(slice_path, program.pid)
            return usage if usage and usage["launches"] > 0 else None

        before = instance.wait_until(launched, "the first launches")
        instance.wait_until(
            lambda: self.usage(slice_path, program.pid)["launches"] >= before["launches"] + more,
            "launches",
            interval=0.05,
        )
        return self.usage(slice_path, program.pid)["block_tasks"] - before["block_tasks"]

    def test_two_slices_with_nothing_set(self):
        self.start_daemon(config=NO_SHORT_ONES)
        for name in ("a", "b"):
            self.gpuctl("create-slice", name)
        programs = {name: self.start_bench(name, *LONG) for name in ("a", "b")}
        for name, program in programs.items():
            self.assertEqual(self.launches_in(name, program), 0)
            self.assertEqual(self.in_force(name, program), "nothing")
            instance.wait_until(lambda: (self.usage(name, program.pid) or {"demand": 0})["demand"] > 0, "demand")
            said = instance.wait_until(
                lambda: self.explained(program, "while nothing is in force for its slice"), "the kernels to be reported"
            )
            self.assertIn("in force on GPU 0: nothing; mode free\n  kernels run as the program launches them\n", said)

    def test_what_programs_did_is_kept_when_they_have_ended(self):
        """Those that end at once too. Where nothing is in force launches are counted each 200 ms, and at the end."""
        self.start_daemon(config=NO_SHORT_ONES)
        for name in ("a", "a/b"):
            self.gpuctl("create-slice", name)
        short = ("work", "--blocks", 2, "--iterations", 2, "--count", 7)
        launches = []
        for programs in (1, 2):
            self.assertRightResults(self.start_bench("a/b", *short).report())
            launches.append(self.ended("a/b", programs)["ended_launches"])
        self.assertGreaterEqual(launches[0], 7)
        self.assertEqual(launches[1], 2 * launches[0])
        self.assertIn(
            f"\nended         2 programs; launches {launches[1]}, evictions 0\n", self.gpuctl("show", "a").stdout
        )
        self.gpuctl("delete-slice", "a/b")
        self.gpuctl("create-slice", "a/b")
        self.assertIn("\nended         none\n", self.gpuctl("show", "a/b").stdout)
        self.assertEqual(self.ended("/", 2)["ended_launches"], launches[1])

    def explained(self, program, what):
        said = self.gpuctl("explain", program.pid).stdout
        return said if what in said else None

    def test_what_is_set_holds_from_the_next_launch_on_and_until_it_is_taken_back(self):
        self.start_daemon(config=NO_SHORT_ONES + "lab.reserve_by_parts = false\n")
        self.gpuctl("create-slice", "a")
        program = self.start_bench("a", *LONG)
        self.assertEqual(self.launches_in("a", program), 0)
        self.gpuctl("set", "a", "max=4")
        instance.wait_until(lambda: self.launches_in("a", program) > 0, "rewritten kernels", interval=0.05)
        self.assertEqual(self.in_force("a", program), "max")
        instance.wait_until(
            lambda: "  all constructs understood\n" in self.gpuctl("explain", program.pid).stdout,
            "explain to say nothing of launches before",
        )
        instance.wait_until(
            lambda: 0 < self.usage("a", program.pid)["holding"] <= 4, "no more than four SMs", interval=0.01
        )
        self.gpuctl("set", "a", "max=none")
        instance.wait_until(lambda: self.launches_in("a", program) == 0, "original kernels", interval=0.05)
        self.assertEqual(self.in_force("a", program), "nothing")
        program.process.terminate()

    def test_who_has_no_work_has_no_demand(self):
        self.start_daemon(config=NO_SHORT_ONES)
        self.gpuctl("create-slice", "a")
        program = self.start_idle_in("a")
        instance.wait_until(lambda: (self.usage("a", program.pid) or {"launches": 0})["launches"] > 0, "launches")
        instance.wait_until(lambda: self.usage("a", program.pid)["demand"] == 0, "demand to end")

    def test_a_priority_is_the_streams(self):
        self.start_daemon(config=NO_SHORT_ONES)
        self.gpuctl("create-slice", "ls", "--priority", 50)
        self.gpuctl("create-slice", "batch")
        log = self.scratch / "debug"
        program = self.start_in(
            "batch", instance.BENCH, "run", *LONG, "--json", env=self.env | {"GPUSLICE_DEBUG": str(log)}
        )
        self.launches_in("batch", program)
        self.assertTrue(self.explained(program, "priority 1 of 2 from below"))
        self.gpuctl("set", "batch", "priority=60")
        instance.wait_until(
            lambda: re.search(r"priority 0 of the program is -3 on the GPU, of rank 2 of 3 \(0\)", log.read_text()),
            "the stream to follow",
        )
        self.assertTrue(self.explained(program, "priority 3 of 3 from below"))


if __name__ == "__main__":
    instance.main()
