"""How far ahead of the GPU a program may launch what cannot be evicted: many short kernels, few long ones."""

from tests.system.harness import instance

# Launches, as it is told, so many kernels that take so long. Says how many that were launched were not over, at most,
# and how many microseconds each took.
PROGRAM = r"""
import ctypes, sys, time
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 over, .param .u32 nanoseconds)
{
  .reg .b32 %r, %old;
  .reg .b64 %over;
  ld.param.u64 %over, [over];
  ld.param.u32 %r, [nanoseconds];
  nanosleep.u32 %r;
  atom.sys.global.add.u32 %old, [%over], 1;
  ret;
}
'''
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, longest = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint32()
host, device = ctypes.c_void_p(), ctypes.c_uint64()
codes = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
         cuda.cuModuleLoadData(ctypes.byref(module), PTX),
         cuda.cuModuleGetFunction(ctypes.byref(function), module, b"last"),
         cuda.cuMemHostAlloc(ctypes.byref(host), 4, 2),
         cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(device), host, 0)]
over = ctypes.cast(host, ctypes.POINTER(ctypes.c_uint32))
parameters = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(x), ctypes.c_void_p) for x in (device, longest)))
print(*codes, flush=True)
for line in sys.stdin:
    count, longest.value = map(int, line.split())
    over[0], ahead, begin = 0, 0, time.monotonic()
    for launched in range(1, count + 1):
        # Cooperatively, which leaves it in its original form.
        code = cuda.cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters)
        if code != 0: print("launch:", code, flush=True)
        ahead = max(ahead, launched - over[0])
    code = cuda.cuCtxSynchronize()
    print(code, ahead, round((time.monotonic() - begin) / count * 1e6), flush=True)
"""
MARK = 16  # launches
SHRINKS_US, JOBS_US = 20_000, 4_000  # how far ahead a program may be, of GPU time, where its grant is not settled
MOST_MARKS = 63


def marks(budget_us, each_us):
    """So many marks may be open when each launch takes so long (src/libgpuslice/streams/in_flight_limit.h)."""
    return min(max(int(budget_us / (MARK * max(each_us, 1)) - 1), 1), MOST_MARKS)


class Harness(instance.SystemTest):
    def start_program(self, config=""):
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "s", "--max", instance.SMS - 1, "--weight", 200)
        self.gpuctl("create-slice", "lighter")
        self.program = self.start_script_in("s", PROGRAM, says="0 0 0 0 0 0 0")

    def ahead(self, count, us):
        """How many launches ahead it was at most, and how long each took in microseconds."""
        code, ahead, each = self.program.ask(count, us * 1000).split()
        self.assertEqual(code, "0")
        return int(ahead), int(each)


class TimedLaunches(Harness):
    def test_short_kernels(self):
        """It is let further ahead than under a policy for jobs, sooner or later: a busy machine may launch more slowly
        than it computes for a while. How many launches that are depends on how long each takes here."""
        self.start_program()
        self.start_idle_in("lighter")  # may want some of the program's SMs at any time
        for _ in range(20):
            ahead, each = self.ahead(400, 50)
            if ahead > MARK * (marks(JOBS_US, each) + 1):
                return
        if marks(SHRINKS_US, each) <= marks(JOBS_US, each) + 1:
            self.skipTest(f"a launch takes {each} us on this machine, too long to tell")
        self.fail(f"{ahead} launches ahead at most, each {each} us")


class InFlightLimit(Harness):
    def test_long_kernels(self):
        """Of 2 ms, of which a mark is 32 ms. Never more than can be while another may want the program's SMs; more
        marks once nobody may. A launch waits for no mark longer than 200 ms."""
        self.start_program(config="lab.settled_ahead_ms = 1000\n")
        other = self.start_idle_in("lighter")
        ahead, _ = self.ahead(8 * MARK, 2000)
        self.assertGreater(ahead, 1)
        self.assertLessEqual(ahead, 2 * MARK + 1)
        other.kill()
        instance.wait_until(lambda: self.usage("s", self.program.pid)["mode"] == "common", "it to be alone")
        instance.wait_until(lambda: self.ahead(8 * MARK, 2000)[0] > 2 * MARK + 1, "it to be let further ahead")

    def test_long_kernels_where_the_administrator_wants_no_more(self):
        self.start_program(config="lab.settled_ahead_ms = 20\n")
        ahead, _ = self.ahead(8 * MARK, 2000)
        self.assertLessEqual(ahead, 2 * MARK + 1)


if __name__ == "__main__":
    instance.main()
