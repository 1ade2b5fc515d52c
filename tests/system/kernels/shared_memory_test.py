"""Dynamic shared memory begins where it begins in the original form, however much of it a launch has
(tests/driver/shared_memory.cc)."""

from tests.system.harness import instance

PROGRAM = instance.DRIVER_PROGRAMS / "shared_memory"
EVICTIONS = 30
STORM_US = 1000  # between two random grants
FOUR_FIT = 56 * 1024  # bytes; with 64 more, three do


class SharedMemory(instance.SystemTest):
    warp_instruction_ns = 100

    def start_program(self, *arguments):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        return self.start_in("s", PROGRAM, *arguments)

    def launches(self, program):
        (kernel,) = self.kernels_of(program, "swizzled")
        return kernel["launches"]

    def assertKeepsSomeOriginal(self, program):
        (kernel,) = self.kernels_of(program, "swizzled")
        self.assertEqual(kernel["form"], "persistent")
        self.assertTrue(
            kernel["reason"].startswith(
                "all constructs understood; launched with blocks its other form cannot have in its original form"
            ),
            kernel,
        )

    def test_swizzled_addresses(self):
        program = self.start_program()
        instance.wait_until(lambda: self.evictions_of("s", program) >= EVICTIONS, f"{EVICTIONS} evictions")
        self.assertKeepsSomeOriginal(program)
        self.assertAllRight(program, "shared_memory")

    def test_blocks_that_just_fit_an_sm_so_often(self):
        program = self.start_program(FOUR_FIT)
        instance.wait_until(lambda: self.launches(program) >= 10, "10 launches")
        self.assertKeepsSomeOriginal(program)
        self.assertEqual(self.evictions_of("s", program), 0)
        self.assertAllRight(program, "shared_memory")


if __name__ == "__main__":
    instance.main()
