"""Policies for jobs know how long launches take that cannot be evicted: they are timed, and remembered by kernel."""

from tests.system.harness import driver_calls, instance

SHORT_NS, LONG_NS = 5_000_000, 500_000_000
LAUNCHES = 4  # to learn from

# Launches, as it is told, kernels that sleep for a while, or until they are let go. Each says when it began and when it
# ended.
PROGRAM = (
    driver_calls.CALLS
    + r"""
import sys
HEAD = b'''
.version 7.0
.target sm_80
.address_size 64
'''
# Who asks for the number of its grid cannot be rewritten.
KERNEL = '''
.visible .entry %s(.param .u64 times, .param .u32 nanoseconds, .param .u64 flag)
{
  .reg .pred %%p;
  .reg .b32 %%r<4>;
  .reg .b64 %%rd<6>;
  %s
  ld.param.u64 %%rd1, [times];
  ld.param.u32 %%r0, [nanoseconds];
  ld.param.u64 %%rd2, [flag];
  mov.u64 %%rd3, %%globaltimer;
  st.global.u64 [%%rd1], %%rd3;
again:
  nanosleep.u32 %%r0;
  ld.volatile.global.u32 %%r1, [%%rd2];
  setp.eq.u32 %%p, %%r1, 0;
  @%%p bra again;
  mov.u64 %%rd3, %%globaltimer;
  st.global.u64 [%%rd1+8], %%rd3;
  ret;
}
'''
NAMES = ["hold_1", "hold_2", "short_one", "long_one"]
def both(name): return KERNEL % (name, "mov.u64 %rd0, %gridid;") + KERNEL % (name + "_together", "")
PTX = HEAD + "".join(map(both, NAMES)).encode()
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
call("cuInit", 0)
context, module, stream = POINTER(), POINTER(), POINTER()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuStreamCreate", ctypes.byref(stream), 1)
shared, there = POINTER(), ctypes.c_uint64()
call("cuMemHostAlloc", ctypes.byref(shared), SIZE(64), 2)
call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), shared, 0)
flag = ctypes.c_uint32.from_address(shared.value)
times = (ctypes.c_uint64 * 2).from_address(shared.value + 16)
def launch(how, name, nanoseconds):
    function = POINTER()
    name += "_together" if how == "together" else ""
    call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    parameters = [ctypes.c_uint64(there.value + 16), ctypes.c_uint32(nanoseconds), there]
    pointers = (POINTER * 3)(*[ctypes.cast(ctypes.byref(one), POINTER) for one in parameters])
    if how == "together":
        return call("cuLaunchCooperativeKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, pointers)
    if how == "plain":
        return call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
    if name not in graphs:
        graph, graphs[name] = POINTER(), POINTER()
        call("cuStreamBeginCapture_v2", stream, 0)
        call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)
        call("cuStreamEndCapture", stream, ctypes.byref(graph))
        call("cuGraphInstantiateWithFlags", ctypes.byref(graphs[name]), graph, ctypes.c_ulonglong(0))
    call("cuGraphLaunch", graphs[name], stream)
graphs = {}
print("ready", flush=True)
for line in sys.stdin:
    what, *how = line.split()
    if what == "launch":  # and wait for it
        flag.value = 1
        for _ in range(int(how[3])):
            launch(how[0], how[1], int(how[2]))
            call("cuStreamSynchronize", stream)
        print(times[0], times[1], flush=True)
    elif what == "hold":
        flag.value = 0
        launch(how[0], how[1], 100_000)
        print("launched", flush=True)
    else:
        flag.value = 1
        call("cuStreamSynchronize", stream)
        print("over", flush=True)
"""
)


class Durations(instance.SystemTest):
    warp_instruction_ns = 0

    def start_program(self, name):
        return self.start_script_in(name, PROGRAM)

    def tell(self, program, *words):
        program.process.stdin.write(" ".join(map(str, words)) + "\n")
        program.process.stdin.flush()

    def wait_for_state(self, program, state):
        def states():
            return {client["pid"]: client["state"] for client in self.clients("/")}

        instance.wait_until(lambda: states().get(program.pid) == state, f"a program that is {state}")

    def learn(self, how):
        """Both kernels, by themselves. Returns what is known of them."""
        for name, nanoseconds in (("short_one", SHORT_NS), ("long_one", LONG_NS)):
            program = self.start_program("/")
            program.ask("launch", how, name, nanoseconds, LAUNCHES)
            # Graphs are known by a number.
            part = {"plain": name, "together": name + "_together", "graph": "graph"}[how]
            count = 2 if how == "graph" and name == "long_one" else 1
            known = instance.wait_until(lambda: self.known(part, count), f"{name} to be known")
            program.end()
        return known

    def known(self, part, count):
        """So many kernels with this in their names, when more than one launch of each was seen; the longest last."""
        kernels = self.call("ListKernels")["kernels"]
        known = [kernel for kernel in kernels if part in kernel["name"] and kernel["launches"] > 1]
        return sorted(known, key=lambda kernel: kernel["observed_us"]) if len(known) == count else None

    def restart_daemon(self):
        self.daemon.process.terminate()
        self.assertEqual(self.daemon.wait(), 0)
        self.start_daemon()

    def test_the_shorter_of_two_goes_first(self):
        self.check("plain")

    def test_the_shorter_of_two_cooperative_launches_goes_first(self):
        self.check("together")

    def test_the_shorter_of_two_graphs_goes_first(self):
        self.check("graph")

    def check(self, how):
        """Also after a restart of the daemon, by what it kept."""
        self.start_daemon()
        self.gpuctl("set", "/", "policy=sjf")
        longest = self.learn(how)[-1]
        self.assertGreaterEqual(longest["observed_us"], LONG_NS / 1000)
        self.assertGreater(longest["predicted_us"], 0)
        self.assertEqual(longest["evict_us"], 0)
        # What holds the GPU is of unknown length each time.
        for hold in ("hold_1", "hold_2"):
            if hold == "hold_2":
                self.restart_daemon()
            holder, long, short = programs = [self.start_program("/") for _ in range(3)]
            self.see_who_goes_first(how, hold, holder, long, short)
            for program in programs:
                program.end()
        self.assertIn(longest["name"], self.gpuctl("show", "--kernels").stdout)

    def see_who_goes_first(self, how, hold, holder, long, short):
        """Both wait for a third one, the long one first."""
        self.assertEqual(holder.ask("hold", how, hold), "launched")
        self.wait_for_state(holder, "running")
        self.tell(long, "launch", how, "long_one", LONG_NS, 1)
        self.wait_for_state(long, "waiting")
        self.tell(short, "launch", how, "short_one", SHORT_NS, 1)
        self.wait_for_state(short, "waiting")
        self.assertEqual(holder.ask("release"), "over")
        short_began, short_ended = map(int, short.answer("the short one").split())
        long_began, _ = map(int, long.answer("the long one").split())
        self.assertLess(short_began, short_ended)
        self.assertLess(short_ended, long_began, "the long one went first, or both at once")


if __name__ == "__main__":
    instance.main()
