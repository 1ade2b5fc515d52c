"""What the library adds to driver calls, counted by callgrind: no time is measured, so a busy machine changes nothing.

The bounds are what a build for this processor has, and a margin: for what another compiler makes of it, and below a
max for how many launches go the long way, as the agent on a busy machine has seen the stream empty. Who makes a call
cheaper lowers its bound. docs/design/launch-cost.md has the table, tests/cost/count.py makes it.
"""

import os
import shutil
import unittest

from tests.cost import count
from tests.system.harness import instance

MARGIN = (1.15, 1.5)
# Instructions with nothing in force, and below a max.
BOUNDS = {
    "cuLaunchKernel": (124, 903),
    "cuLaunchKernel_own_stream": (124, 898),
    "cuLaunchKernelEx": (142, 969),
    "cuLaunchKernelEx_attribute": (151, 1025),
    "cuMemcpyAsync": (50, 376),
    "cuMemcpyHtoDAsync": (50, 376),
    "cuMemsetD8Async": (51, 377),
    "cuMemAllocAsync": (1414, 1442),
    "cuMemFreeAsync": (707, 733),
    "cuEventRecord": (31, 359),
    "cuStreamWaitEvent": (62, 583),
    "cuEventQuery": (38, 38),
    "cuEventSynchronize": (38, 38),
    "cuStreamQuery": (46, 46),
    "cuStreamSynchronize": (46, 46),
    "cuCtxSynchronize": (39, 39),
    "launch_and_wait": (316, 5000),
    "launch_and_event": (833, 3000),
    "copy_and_wait": (232, 273),
    "cuDeviceGetAttribute": (39, 39),
}
# Of launches and bursts also the cache lines, of code and of data together, and the instructions that lock one.
LINES = {"cuLaunchKernel": (22, 142), "cuLaunchKernelEx": (22, 152), "launch_and_wait": (44, 470)}
LOCKED = {"cuLaunchKernel": (2, 9), "cuLaunchKernelEx": (2, 9), "launch_and_wait": (4, 58)}


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
