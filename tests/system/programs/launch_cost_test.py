"""What the library adds to driver calls, counted by callgrind: no time is measured, so a busy machine changes nothing.

The bounds are what a build for this processor has, and a margin: for what another compiler makes of it, and below a
max for how many kernels share a place among the latest decisions, which their addresses say. Who makes a call cheaper
lowers its bound. docs/design/launch-cost.md has the table, tests/cost/count.py makes it.
"""

import os
import shutil
import unittest

from tests.cost import count
from tests.system.harness import instance

MARGIN = (1.15, 1.5)
# Instructions with nothing in force, and below a max.
BOUNDS = {
    "cuLaunchKernel": (124, 1021),
    "cuLaunchKernel_own_stream": (124, 1012),
    "cuLaunchKernelEx": (142, 1085),
    "cuLaunchKernelEx_attribute": (151, 1137),
    "cuMemcpyAsync": (50, 444),
    "cuMemcpyHtoDAsync": (50, 444),
    "cuMemsetD8Async": (51, 445),
    "cuMemAllocAsync": (1427, 1455),
    "cuMemFreeAsync": (707, 733),
    "cuEventRecord": (31, 424),
    "cuStreamWaitEvent": (62, 661),
    "cuEventQuery": (38, 38),
    "cuEventSynchronize": (38, 38),
    "cuStreamQuery": (46, 46),
    "cuStreamSynchronize": (46, 46),
    "cuCtxSynchronize": (39, 39),
    "launch_and_wait": (336, 5501),
    "launch_and_event": (884, 3000),
    "copy_and_wait": (250, 291),
    "cuDeviceGetAttribute": (44, 44),
}
# Of launches and bursts also the cache lines, of code and of data together, and the instructions that lock one.
LINES = {"cuLaunchKernel": (23, 162), "cuLaunchKernelEx": (23, 172), "launch_and_wait": (44, 470)}
LOCKED = {"cuLaunchKernel": (2, 11), "cuLaunchKernelEx": (2, 11), "launch_and_wait": (6, 60)}


@unittest.skipUnless(shutil.which("valgrind") and shutil.which("objdump"), "valgrind or objdump is not installed")
@unittest.skipUnless((count.COST_PROGRAMS / "libnull_device.so").exists(), "the null device is not for this processor")
@unittest.skipIf(os.environ.get("GPUCTL_SANITIZER_RUNTIME"), "sanitizers add instructions of their own")
class LaunchCost(instance.SystemTest):
    def test_calls_cost_no_more_than_they_did(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s")
        self.assertBounded(0, count.count(self, *BOUNDS))
        self.gpuctl("set", "s", f"max={instance.SMS * 3 // 4}")
        self.assertBounded(1, count.count(self, *BOUNDS))

    def assertBounded(self, which, costs):
        self.assertEqual(set(costs), set(BOUNDS))
        for name, cost in costs.items():
            with self.subTest(call=name, below_a_max=bool(which), cost=cost):
                self.assertLessEqual(cost.instructions, BOUNDS[name][which] * MARGIN[which])
                self.assertGreater(cost.instructions, 0, "the call is not hooked: nothing was counted")
                if name in LINES:
                    self.assertLessEqual(cost.code_lines + cost.data_lines, LINES[name][which] * MARGIN[which])
                    self.assertLessEqual(cost.locked, LOCKED[name][which] * MARGIN[which])
                    self.assertLess(cost.system_calls, 0.1)


if __name__ == "__main__":
    instance.main()
