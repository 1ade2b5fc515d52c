"""A kernel whose blocks can run but one block-task each (tests/driver/guarded.cc) is evicted between them, and each of
its block-tasks runs once all the same."""

from tests.system.harness import instance

PROGRAM = instance.DRIVER_PROGRAMS / "guarded"
LEAST_EVICTIONS = 100
STORM_US = 10000  # between two random grants


class Guarded(instance.SystemTest):
    warp_instruction_ns = 2000

    def start_program(self, *arguments, guard="1"):
        program = self.start_in("s", PROGRAM, *arguments, env={**self.env, "GPUSLICE_GUARD": guard})
        program.wait_started()
        return program

    def start_beside_another(self):
        """One launch of many seconds, of a program that has not the GPU to itself."""
        self.gpuctl("create-slice", "s")
        self.gpuctl("create-slice", "other")
        self.start_idle_in("other")
        program = self.start_in("s", PROGRAM, 3000, env={**self.env, "GPUSLICE_GUARD": "1"})
        instance.wait_until(
            lambda: (self.usage("s", program.pid) or {}).get("holding") == instance.SMS, "all SMs to be held"
        )
        return program

    def wait_for_launches(self, program, more):
        before = self.usage("s", program.pid)["launches"]
        instance.wait_until(lambda: self.usage("s", program.pid)["launches"] >= before + more, f"{more} launches")

    def kernel(self, program):
        kernels = self.kernels_of(program, "hand_over")
        self.assertEqual(len(kernels), 1, kernels)
        return kernels[0]

    def test_storm(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_program(guard="always")
        kernel = self.kernel(program)
        self.assertEqual(
            (kernel["form"], kernel["reason"]),
            ("guarded", "arrives at a barrier without waiting (bar.arrive): each block runs one block-task"),
        )
        instance.wait_until(lambda: self.evictions_of("s", program) >= LEAST_EVICTIONS, f"{LEAST_EVICTIONS} evictions")
        self.assertAllRight(program, "guarded")

    def test_sms_are_given_up_and_taken_back(self):
        self.start_daemon()
        program = self.start_beside_another()
        for most in (2, 5, 8):
            self.gpuctl("set", "s", f"max={most}")
            instance.wait_until(
                lambda: (self.usage("s", program.pid) or {}).get("holding") == most,
                f"{most} SMs held, now {self.usage('s', program.pid)}",
            )
        self.assertAllRight(program, "guarded")

    def test_a_reserve_that_was_lent_is_given_back(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", "4", "--reserve-mode", "lend")
        program = self.start_beside_another()
        other = self.start_bench("ls", "work", "--blocks", 16, "--iterations", 20, "--count", 50)
        self.assertRightResults(other.report())
        self.assertGreater(self.evictions_of("s", program), 0)
        self.assertAllRight(program, "guarded")

    def test_alone_it_stays_as_it_is(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        program = self.start_program()
        self.assertIn("launched with the GPU to itself in its original form", self.kernel(program)["reason"])
        self.assertAllRight(program, "guarded")

    def test_nobody_asked_for_it(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_program(guard="")
        kernel = self.kernel(program)
        self.assertEqual(kernel["form"], "opaque")
        self.assertTrue(
            kernel["reason"].startswith("arrives at a barrier without waiting (bar.arrive); starts when"), kernel
        )
        self.assertAllRight(program, "guarded")

    def test_with_a_second_stream_it_is_not_evicted(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_program(16, 2, guard="always")
        wanted = "launched by a program with several streams in its original form"
        instance.wait_until(lambda: wanted in self.kernel(program)["reason"], wanted)
        self.wait_for_launches(program, 5)  # what it launched before its second stream is over
        before = self.evictions_of("s", program)
        self.wait_for_launches(program, 20)  # of some storms each
        self.assertEqual(self.evictions_of("s", program), before)
        self.assertAllRight(program, "guarded")


if __name__ == "__main__":
    instance.main()
