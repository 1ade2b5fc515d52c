"""Kernels that have no other form are confined to the SMs of their slice: with right results, in the order of their
streams, and apart from those of other slices."""

from tests.system.harness import driver_calls, instance
from tests.system.harness.sms import seen_by, watch_sms

MOST = 4
SHARE = 4
ROUNDS = 12
MS = 1_000_000  # in ns
WHAT_WAS_THERE = 7
CUDA_ERROR_NOT_READY = 600

# Launches, as it is told, a kernel that cannot be rewritten. Each block appends the number of the round to what it
# finds, in base 10 or so: what comes out says in which order kernels, copies, memsets and host functions ran. Each says
# on which SM it ran, too.
PROGRAM = (
    driver_calls.CALLS
    + r"""
import sys
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry append(.param .u64 values, .param .u64 seen, .param .u32 round, .param .u32 nanoseconds)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<7>;
  mov.u64 %rd6, %gridid;
  mov.u32 %r5, %tid.x;
  setp.ne.u32 %p, %r5, 0;
  @%p ret;
  ld.param.u64 %rd0, [values];
  ld.param.u64 %rd1, [seen];
  ld.param.u32 %r0, [round];
  ld.param.u32 %r1, [nanoseconds];
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd0, %rd2;
  ld.global.u32 %r3, [%rd3];
  nanosleep.u32 %r1;
  mad.lo.u32 %r4, %r3, 31, %r0;
  st.global.u32 [%rd3], %r4;
  mov.u32 %r5, %smid;
  mov.u64 %rd4, 1;
  shl.b64 %rd4, %rd4, %r5;
  atom.global.or.b64 %rd5, [%rd1], %rd4;
  ret;
}
.visible .entry wait_for(.param .u64 letter)
{
  .reg .pred %p;
  .reg .b32 %r0;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, %gridid;
  ld.param.u64 %rd0, [letter];
again:
  ld.volatile.global.u32 %r0, [%rd0];
  setp.eq.u32 %p, %r0, 0;
  @%p bra again;
  ret;
}
'''
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
BLOCKS = 64
LATE_S = 5  # half of the time that a launch may wait for what does not wait for the program
BYTES = SIZE(4 * BLOCKS)
def memory(count):
    result = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(result), SIZE(4 * count))
    return result
def set_up():
    global function, waits, values, copied, seen
    context, module, function = POINTER(), POINTER(), POINTER()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"append")
    waits = POINTER()
    call("cuModuleGetFunction", ctypes.byref(waits), module, b"wait_for")
    values, copied, seen = memory(BLOCKS), memory(BLOCKS), memory(2)
call("cuInit", 0)
set_up()
order = []
HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
note = HOST(lambda data: order.append(data))
def stream(kind):
    if kind == "legacy": return POINTER(1)
    if kind == "per-thread": return POINTER(2)
    result = POINTER()
    call("cuStreamCreate", ctypes.byref(result), int(kind == "non-blocking"))
    return result
def append(stream, number, nanoseconds):
    parameters = [values, seen, ctypes.c_uint32(number), ctypes.c_uint32(nanoseconds)]
    pointers = (POINTER * 4)(*[ctypes.cast(ctypes.byref(one), POINTER) for one in parameters])
    call("cuLaunchKernel", function, BLOCKS, 1, 1, 1024, 1, 1, 0, stream, pointers, None)
def hold(on):
    # Launches a kernel that ends when the host writes what this returns.
    letter = POINTER()
    call("cuMemHostAlloc", ctypes.byref(letter), SIZE(4), 2)
    letter = ctypes.cast(letter, ctypes.POINTER(ctypes.c_uint32))
    letter[0] = 0
    pointers = (POINTER * 1)(ctypes.cast(ctypes.byref(letter), POINTER))
    call("cuLaunchKernel", waits, 1, 1, 1, 1, 1, 1, 0, on, pointers, None)
    return letter
print("ready", flush=True)
for line in sys.stdin:
    if line == "release\n":
        flags, active = ctypes.c_uint32(), ctypes.c_int()
        call("cuDevicePrimaryCtxRelease_v2", 0)
        call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
        set_up()
        print(active.value, flush=True)
        continue
    if line == "hold\n":
        first = stream("non-blocking")
        letter = hold(first)
        print("held", flush=True)
        continue
    if line == "answer\n":
        # The host answers once its launch has returned. If that takes very long, a thread does.
        import threading
        def answer(by):
            if not answered: answered.append(by)
            letter[0] = 1
        answered = []
        late = threading.Timer(LATE_S, answer, ["another thread"])
        late.start()
        second = stream("non-blocking")
        append(second, 1, 0)
        answer("who launched")
        late.cancel()
        call("cuStreamSynchronize", first)
        call("cuStreamSynchronize", second)
        print(answered[0], flush=True)
        continue
    if line == "beside\n":
        second = stream("non-blocking")
        append(second, 1, 0)
        call("cuStreamSynchronize", second)
        waited = cuda.cuStreamQuery(first)
        letter[0] = 1
        call("cuStreamSynchronize", first)
        print(waited, flush=True)
        continue
    kind, first, rounds, nanoseconds = line.split()
    on = stream(kind)
    call("cuMemsetD32Async", seen, 0, SIZE(2), on)
    call("cuMemsetD32Async", values, int(first), SIZE(BLOCKS), on)
    expected = int(first)
    order.clear()
    for number in range(1, int(rounds) + 1):
        append(on, number, int(nanoseconds))
        call("cuLaunchHostFunc", on, note, POINTER(number))
        # Every other round goes on with what a copy brought away before a memset.
        if number % 2 == 0:
            call("cuMemcpyDtoDAsync_v2", copied, values, BYTES, on)
            call("cuMemsetD32Async", values, 99, SIZE(BLOCKS), on)
            call("cuMemcpyDtoDAsync_v2", values, copied, BYTES, on)
        expected = (expected * 31 + number) % 2**32
    call("cuStreamSynchronize", on)
    got, mask = (ctypes.c_uint32 * BLOCKS)(), ctypes.c_uint64()
    call("cuMemcpyDtoH_v2", got, values, BYTES)
    call("cuMemcpyDtoH_v2", ctypes.byref(mask), seen, SIZE(8))
    in_order = order == list(range(1, int(rounds) + 1))
    print(sum(value != expected for value in got), in_order, bin(mask.value).count("1"), flush=True)
    if kind.endswith("blocking"): call("cuStreamDestroy_v2", on)
"""
)


# Each second launch of a stream is a plugin's, which finds its own symbols first. It is loaded behind the first one.
WITH_PLUGIN = (
    PROGRAM.replace('call("cuLaunchKernel", function, BLOCKS', "launch(number, function, BLOCKS")
    .replace(
        "for line in sys.stdin:\n",
        """plugin = None
def launch(number, *arguments):
    global plugin
    if number % 2 == 1: return call("cuLaunchKernel", *arguments)
    if not plugin: plugin = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
    kernel, blocks, _, _, threads, _, _, _, on, parameters, _ = arguments
    if plugin.plugin_launch(kernel, blocks, threads, on, parameters) != 0: raise SystemExit("the plugin's launch")
for line in sys.stdin:
    if line == "by turns\\n":
        on = stream("non-blocking")
        call("cuMemsetD32Async", values, 1, SIZE(BLOCKS), on)
        expected = 1
        for number in range(1, 21):
            append(on, number, 1_000_000)
            expected = (expected * 31 + number) % 2**32
        call("cuStreamSynchronize", on)
        got = (ctypes.c_uint32 * BLOCKS)()
        call("cuMemcpyDtoH_v2", got, values, BYTES)
        print(sum(value != expected for value in got), flush=True)
        continue
""",
        1,
    )
    .replace("import sys\n", "import os, sys\n", 1)
)


class Opaque(instance.SystemTest):
    warp_instruction_ns = 0

    def start_program(self, name, program=PROGRAM):
        return self.start_script_in(name, program)

    def why(self, program):
        (kernel,) = (one for one in self.kernels_of(program, "append") if one["name"] == "append")
        self.assertEqual(kernel["form"], "opaque")
        return kernel["reason"]

    def test_a_slice_confines_it_and_its_stream_keeps_its_order(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        program = self.start_program("s")
        for kind in ("legacy", "per-thread", "blocking", "non-blocking"):
            with self.subTest(stream=kind):
                self.assertEqual(program.ask(kind, WHAT_WAS_THERE, ROUNDS, MS), f"0 True {MOST}")
        instance.wait_until(lambda: f"on {MOST} (a green context)" in self.why(program), "it to be said")

    def test_a_new_maximum_holds_from_the_next_launch_on(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        program = self.start_program("s")
        # SMs come in pairs. Of one alone there is no part; so it runs anywhere, and that is said.
        for most, sms in ((MOST, MOST), (2, 2), (7, 6), (1, instance.SMS), ("none", instance.SMS)):
            with self.subTest(max=most):
                self.gpuctl("set", "s", f"max={most}")
                granted = instance.SMS if most == "none" else most
                instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == granted, "the grant")
                self.assertEqual(program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS), f"0 True {sms}")
                if most == 1:
                    instance.wait_until(
                        lambda: "no whole group of SMs is granted" in self.why(program), "it to be said"
                    )

    def test_there_are_parts_for_ever_more_maxima(self):
        """The library has kMostParts of them at a time, and gives back the one used longest ago."""
        self.env["SOFTGPU_SMS"] = "64"
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "other")
        self.gpuctl("create-slice", "s", "--max", 62)
        trace = self.scratch / "trace"
        program = self.start_script_in("s", PROGRAM.replace("BLOCKS = 64", "BLOCKS = 128"), GPUSLICE_DEBUG=str(trace))

        def limit(most):
            self.gpuctl("set", "s", f"max={most}")
            instance.wait_until(lambda: self.usage("s", program.pid)["common_sms"] == most, "the part")
            for kind in ("non-blocking", "legacy"):
                self.assertEqual(program.ask(kind, WHAT_WAS_THERE, 2, MS), f"0 True {most}", f"max={most}")

        for most in range(62, 1, -2):
            limit(most)
        self.gpuctl("set", "other", "reserve=4", "reserve-mode=strict")
        for most in (58, 44, 30, 16, 62, 2):  # each begins elsewhere now
            limit(min(most, 60))
        self.assertIn("gives back the green context of SMs", trace.read_text())

    def test_what_the_driver_refuses_once_is_tried_again(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        ask = ("non-blocking", WHAT_WAS_THERE, ROUNDS, MS)
        for function in ("cuGreenCtxCreate", "cuGreenCtxStreamCreate", "cuDevSmResourceSplitByCount"):
            with self.subTest(function):
                program = self.start_script_in("s", PROGRAM, **self.env_of_refusal(function, 1))
                self.assertEqual(program.ask(*ask), f"0 True {instance.SMS}")
                instance.wait_until(lambda of=program: of.ask(*ask) == f"0 True {MOST}", "a part of the GPU")
                program.end()

    def test_it_has_as_many_sms_as_the_program_was_told_of_wherever_they_begin(self):
        """Nine SMs are four pairs and one more. The grant begins at the fourth, in the middle of a pair."""
        self.env["SOFTGPU_SMS"] = "9"
        self.start_daemon()
        self.gpuctl("create-slice", "other", "--reserve", 3, "--reserve-mode", "strict", "--max", 3)
        self.gpuctl("create-slice", "s")
        busy = self.start_bench("other", "work", "--blocks", 64, "--iterations", 20, "--seconds", 60)
        instance.wait_until(
            lambda: (self.usage("other", busy.pid) or {"holding": 0})["holding"] == 3, "the other program's SMs"
        )
        program = self.start_program("s")
        self.assertEqual(program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS), "0 True 6")

    def test_a_program_for_which_nothing_is_in_force_does_not_move_it(self):
        """Nor does it take its grant while it has nothing to run."""
        self.start_daemon(config="")
        self.gpuctl("create-slice", "free")
        self.gpuctl("create-slice", "s", "--max", 6)
        beside = self.start_bench("free", "work", "--blocks", 64, "--iterations", 20, "--seconds", 60)
        instance.wait_until(lambda: (self.usage("free", beside.pid) or {"demand": 0})["demand"], "its demand")
        watch = watch_sms(self)
        program = self.start_program("s")
        for works in (True, False):
            if not works:
                beside.stop()
                instance.wait_until(lambda: self.usage("free", beside.pid) is None, "its end")
            self.assertEqual(program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS), "0 True 6")
            instance.wait_until(lambda: self.usage("s", program.pid)["demand"] == 0, "no demand")
            self.assertEqual(self.usage("s", program.pid)["granted"], 6)
        sms, _, _ = seen_by(watch)
        self.assertEqual(sms[program.pid], 0b111111)

    def test_the_primary_context_ends_when_the_program_has_released_it(self):
        """A part of the GPU holds it as well."""
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        program = self.start_program("s")
        for _ in range(2):
            self.assertEqual(program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS), f"0 True {MOST}")
            self.assertEqual(program.ask("release"), "0")
        self.assertEqual(program.ask("legacy", WHAT_WAS_THERE, ROUNDS, MS), f"0 True {MOST}")

    def test_a_kernel_that_waits_for_the_program_does_not_hang_it(self):
        """Its next kernel needs another part of the GPU, which the driver makes only when the device is idle. It is not
        before the program goes on."""
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        program = self.start_program("s")
        self.assertEqual(program.ask("hold"), "held")
        self.gpuctl("set", "s", "max=2")
        instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == 2, "the grant")
        self.assertEqual(program.ask("beside"), str(CUDA_ERROR_NOT_READY))
        instance.wait_until(lambda: "may wait for the program" in self.why(program), "it to be said")

    def test_a_kernel_that_waits_for_the_program_holds_up_its_launches_little(self):
        self.assert_is_not_held_up("--max", 6)

    def test_nor_where_it_was_launched_while_nothing_was_in_force(self):
        self.assert_is_not_held_up()

    def assert_is_not_held_up(self, *settings):
        """Each new maximum needs another part, which there is soon after that kernel has ended."""
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "s", *settings)
        program = self.start_program("s")
        for most in (MOST, 2, 6):
            self.assertEqual(program.ask("hold"), "held")
            self.gpuctl("set", "s", f"max={most}")
            instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == most, "the grant")
            self.assertEqual(program.ask("answer"), "who launched")
            ask = ("non-blocking", WHAT_WAS_THERE, ROUNDS, MS)
            instance.wait_until(lambda: program.ask(*ask) == f"0 True {most}", "a part of the GPU")

    def test_a_plugin_with_symbols_of_its_own_keeps_the_order_of_streams(self):
        """Its launches are not seen, and not confined."""
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", MOST)
        plugin = repr(str(instance.DRIVER_PROGRAMS / "plugin.so"))
        program = self.start_program("s", WITH_PLUGIN.replace("sys.argv[1]", plugin))
        for _ in range(3):
            self.assertEqual(program.ask("by turns"), "0")

    def test_two_slices_share_no_sm(self):
        self.start_daemon()
        self.assert_share_no_sm("--max", SHARE, "--reserve", SHARE, "--reserve-mode", "strict")

    def test_nor_do_two_with_a_max_each(self):
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.assert_share_no_sm("--max", SHARE)

    def assert_share_no_sm(self, *settings):
        programs = []
        for name in ("a", "b"):
            self.gpuctl("create-slice", name, *settings)
            programs.append(self.start_program(name))
        watch = watch_sms(self)
        for program in programs:
            program.process.stdin.write(f"non-blocking {WHAT_WAS_THERE} {ROUNDS} {20 * MS}\n")
            program.process.stdin.flush()
        for program in programs:
            self.assertEqual(program.answer("the launches"), f"0 True {SHARE}")
        sms, together, shared = seen_by(watch)
        self.assertGreater(together, 0, "they were never at work at the same time")
        self.assertEqual(shared, 0)
        masks = [sms[program.pid] for program in programs]
        self.assertEqual([mask.bit_count() for mask in masks], [SHARE, SHARE], sms)
        self.assertEqual(masks[0] & masks[1], 0, sms)


if __name__ == "__main__":
    instance.main()
