"""What Record says of the shapes of launches, in both forms: what durations are predicted from."""

import sys

from bench.lab.client import Varlink
from tests.system.harness import driver_calls, instance

KIB = 1024
ELEMENTS = 30011  # of vectorAdd's trivial size: three arrays of floats

# Launches a kernel that cannot be rewritten, since its image is loaded with an option that shapes the code. So the
# driver alone says where its parameters lie.
OPAQUE = (
    driver_calls.CALLS
    + r"""
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u32 value, .param .u64 array)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u32 %r0, [value];
  ld.param.u64 %rd0, [array];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  add.u64 %rd2, %rd0, %rd1;
  st.global.u32 [%rd2+1024], %r0;
  ret;
}
'''
BYTES, OPTIMIZATION_LEVEL = 100_000, 7
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
context, module, function, memory = POINTER(), POINTER(), POINTER(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
option, value = ctypes.c_int(OPTIMIZATION_LEVEL), POINTER(2)
call("cuModuleLoadDataEx", ctypes.byref(module), PTX, 1, ctypes.byref(option), ctypes.byref(value))
call("cuModuleGetFunction", ctypes.byref(function), module, b"fill")
call("cuMemAlloc_v2", ctypes.byref(memory), SIZE(BYTES))
inside = ctypes.c_uint64(memory.value + 64)
parameters = [ctypes.c_uint32(7), inside]
pointers = (POINTER * 2)(*[ctypes.cast(ctypes.byref(one), POINTER) for one in parameters])
for _ in range(200):
    call("cuLaunchKernel", function, 3, 1, 1, 32, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize")
found = ctypes.c_uint32()
call("cuMemcpyDtoH_v2", ctypes.byref(found), ctypes.c_uint64(inside.value + 1024), SIZE(4))
assert found.value == 7
"""
)


def rounded_up(number):
    return -(-number // KIB) * KIB


class Recorded(instance.SystemTest):
    warp_instruction_ns = 500

    def setUp(self):
        super().setUp()
        self.start_daemon(config="")
        self.stream = Varlink(self.socket, instance.PATIENCE_S)
        self.addCleanup(self.stream.close)
        self.stream.send("Record", {"original": True}, more=True)
        self.assertEqual(self.stream.receive()["parameters"], {"launches": [], "lost": 0})

    def launch(self, original):
        """The first launch in that form that is told."""
        while True:
            for launch in self.stream.receive()["parameters"]["launches"]:
                if launch["original"] == original:
                    return launch

    def test_a_rewritten_kernel(self):
        bench = self.start_bench("/", "vectorAdd", "--seconds", 2)
        launch = self.launch(original=False)
        self.assertEqual((launch["threads"], launch["input_bytes"]), (256, rounded_up(3 * 4 * ELEMENTS)))
        self.assertEqual(launch["blocks"], -(-ELEMENTS // 256))
        self.assertGreater(launch["sms"], 0)
        bench.report()

    def test_a_kernel_that_cannot_be_rewritten(self):
        self.gpuctl("run", "--slice", "/", "--", sys.executable, "-c", OPAQUE)
        launch = self.launch(original=True)
        self.assertEqual((launch["blocks"], launch["threads"]), (3, 32))
        self.assertEqual(launch["input_bytes"], rounded_up(100_000))


if __name__ == "__main__":
    instance.main()
