#!/usr/bin/env python3
"""Dynamic shared memory begins where it begins in the original form, however much of it a launch has (tests/driver/shared_memory.cc)."""
import instance

PROGRAM = instance.DRIVER_PROGRAMS / "shared_memory"
EVICTIONS = 30
STORM_US = 1000  # between two random grants


class SharedMemory(instance.SystemTest):
    warp_instruction_ns = 100

    def test_swizzled_addresses(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_in("s", PROGRAM)
        instance.wait_until(lambda: (self.usage("s", program.pid) or {"evictions": 0})["evictions"] >= EVICTIONS, f"{EVICTIONS} evictions")
        kernel, = self.kernels_of(program, "swizzled")
        self.assertEqual(kernel["form"], "persistent")
        self.assertTrue(kernel["reason"].startswith("all constructs understood; launched with blocks its other form cannot have in its original form"),
                        kernel)
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertRegex(program.out(), r"^shared_memory: [1-9]\d* results, 0 wrong$")


if __name__ == "__main__":
    instance.main()
