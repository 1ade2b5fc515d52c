"""The order of streams holds whatever goes on beside it, confined, rewritten and in a storm; and while another thread
begins and ends captures, launches do not go past those before them."""

import re
import sys

from tests.system.harness import driver_calls, instance

PROGRAM = instance.DRIVER_PROGRAMS / "stream_order"
SECONDS = 3
MOST = 4
STORM_US = 2000  # between two random grants
ROUNDS, KERNELS = 40, 300
# Launches a chain of kernels that keep their original form, while another thread captures, or not.
CHAIN = (
    driver_calls.CALLS
    + r"""
import sys, threading
PTX = b'''
.version 7.0
.target sm_70
.address_size 64
.visible .entry step(.param .u64 value, .param .u32 number)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  mov.u64 %rd2, %gridid;
  ld.param.u64 %rd1, [value];
  ld.param.u32 %r1, [number];
  ld.global.u32 %r2, [%rd1];
  mad.lo.u32 %r3, %r2, 3, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}
'''
P, U32, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
call("cuInit", 0)
context = made("cuDevicePrimaryCtxRetain", 0)
call("cuCtxSetCurrent", context)
step = made("cuModuleGetFunction", made("cuModuleLoadData", PTX), b"step")
value = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(value), SIZE(4))
stream, other = made("cuStreamCreate", 1), made("cuStreamCreate", 1)
captures, over = 0, threading.Event()
def capture():
    global captures
    call("cuCtxSetCurrent", context)
    graph = P()
    while not over.is_set():
        call("cuStreamBeginCapture_v2", other, 1)
        call("cuStreamEndCapture", other, ctypes.byref(graph))
        call("cuGraphDestroy", graph)
        captures += 1
print("ready", flush=True)
for line in sys.stdin:
    rounds, kernels = map(int, line.split())
    beside = threading.Thread(target=capture)
    beside.start()
    wrong = 0
    for _ in range(rounds):
        call("cuMemsetD32Async", value, 0, SIZE(1), stream)
        expected = 0
        for number in range(1, kernels + 1):
            parameters = [value, U32(number)]
            pointers = (P * 2)(*[ctypes.cast(ctypes.byref(one), P) for one in parameters])
            call("cuLaunchKernel", step, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
            expected = (3 * expected + number) % 2**32
        found = U32()
        call("cuMemcpyDtoHAsync_v2", ctypes.byref(found), value, SIZE(4), stream)
        call("cuStreamSynchronize", stream)
        wrong += found.value != expected
    over.set()
    beside.join()
    print(wrong, captures > 100, flush=True)
"""
)


class StreamOrder(instance.SystemTest):
    warp_instruction_ns = 100

    def assertInOrder(self, program):
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertRegex(program.out(), r"^stream_order: [1-9]\d* results, 0 wrong$")
        print(program.out().strip(), re.sub(r"\s+", " ", program.err()), file=sys.stderr)

    def stress(self, *options, settings=(), **daemon):
        """A plain program runs beside it."""
        self.start_daemon(*options, **daemon)
        self.gpuctl("create-slice", "s", *settings)
        strict = {**self.env, "SOFTGPU_STRICT_STREAMS": "1"}  # nor does anyone name a stream that is destroyed
        outside = {key: value for key, value in strict.items() if key != "GPUCTL_SOCKET"}
        programs = [self.start(PROGRAM, SECONDS, 1, env=outside), self.start_in("s", PROGRAM, SECONDS, 2, env=strict)]
        for program in programs:
            self.assertInOrder(program)

    def test_with_nothing_in_force(self):
        self.stress(config="")

    def test_confined(self):
        self.stress(config="", settings=("--max", MOST))

    def test_rewritten(self):
        self.stress()

    def test_rewritten_below_a_max(self):
        self.stress(settings=("--max", MOST))

    def test_in_a_storm(self):
        self.stress("--evict-storm", STORM_US)

    def test_while_another_thread_captures(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s", "--max", MOST)
        program = self.start_script_in("s", CHAIN, SOFTGPU_WARP_INSTRUCTION_NS="20000")
        self.assertEqual(program.ask(ROUNDS, KERNELS), "0 True")


if __name__ == "__main__":
    instance.main()
