#!/usr/bin/env python3
"""Dynamic shared memory begins where it begins in the original form, however much of it a launch has (tests/driver/shared_memory.cc)."""
import instance

PROGRAM = instance.DRIVER_PROGRAMS / "shared_memory"
EVICTIONS = 30
STORM_US = 1000  # between two random grants
FOUR_FIT = 56 * 1024  # bytes; with 48 more, three do


class SharedMemory(instance.SystemTest):
    warp_instruction_ns = 100

    def start_program(self, *arguments):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        return self.start_in("s", PROGRAM, *arguments)

    def launches(self, program):
        kernel, = self.kernels_of(program, "swizzled")
        return kernel["launches"]

    def evictions(self, program):
        return (self.usage("s", program.pid) or {"evictions": 0})["evictions"]

    def assertKeepsSomeOriginal(self, program):
        kernel, = self.kernels_of(program, "swizzled")
        self.assertEqual(kernel["form"], "persistent")
        self.assertTrue(kernel["reason"].startswith("all constructs understood; launched with blocks its other form cannot have in its original form"),
                        kernel)

    def assertAllRight(self, program):
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertRegex(program.out(), r"^shared_memory: [1-9]\d* results, 0 wrong$")

    def test_swizzled_addresses(self):
        program = self.start_program()
        instance.wait_until(lambda: self.evictions(program) >= EVICTIONS, f"{EVICTIONS} evictions")
        self.assertKeepsSomeOriginal(program)
        self.assertAllRight(program)

    def test_blocks_that_just_fit_an_sm_so_often(self):
        program = self.start_program(FOUR_FIT)
        instance.wait_until(lambda: self.launches(program) >= 10, "10 launches")
        self.assertKeepsSomeOriginal(program)
        self.assertEqual(self.evictions(program), 0)
        self.assertAllRight(program)


if __name__ == "__main__":
    instance.main()
