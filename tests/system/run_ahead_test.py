#!/usr/bin/env python3
"""How far ahead of the GPU a program may launch what cannot be evicted: many short kernels, few long ones."""
import sys

import instance

# Launches, as it is told, so many kernels that take so long, and says how many of them were not over when the last was launched.
PROGRAM = r"""
import ctypes, sys, time
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry last(.param .u32 nanoseconds)
{
  .reg .b32 %r;
  ld.param.u32 %r, [nanoseconds];
  nanosleep.u32 %r;
  ret;
}
'''
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, longest = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
codes = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
         cuda.cuModuleLoadData(ctypes.byref(module), PTX), cuda.cuModuleGetFunction(ctypes.byref(function), module, b"last")]
parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(longest), ctypes.c_void_p))
print(*codes, flush=True)
for line in sys.stdin:
    count, longest.value = map(int, line.split())
    begin = time.monotonic()
    for _ in range(count):
        # Cooperatively, which leaves it in its original form.
        code = cuda.cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters)
        if code != 0: print("launch:", code, flush=True)
    launched = time.monotonic()
    code = cuda.cuCtxSynchronize()
    end = time.monotonic()
    print(code, round((end - launched) / ((end - begin) / count)), flush=True)
"""
MARK = 16  # launches
COUNT = 400


class RunAhead(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        command = [instance.GPUCTL, "run", "--slice", "s", sys.executable, "-c", PROGRAM]
        self.program = instance.Conversation(self, command, self.env_of_others())
        self.assertEqual(self.program.answer("its start"), "0 0 0 0 0")

    def ahead(self, count, us):
        code, ahead = self.program.ask(count, us * 1000).split()
        self.assertEqual(code, "0")
        return int(ahead)

    def test_short_kernels(self):
        """Of 0.2 ms: 20 ms with nobody else there are six marks, the last of which is not complete. Fewer on a slow machine, but more
        than where there are others."""
        self.ahead(COUNT, 200)
        self.assertGreater(self.ahead(COUNT, 200), 2 * MARK + 1)

    def test_long_kernels(self):
        """Of 5 ms: no more than can be."""
        self.assertLessEqual(self.ahead(8 * MARK, 5000), 2 * MARK + 1)


if __name__ == "__main__":
    instance.main()
