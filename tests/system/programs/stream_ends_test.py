"""What streams waited for or captured is over when it is, however it ends: with its stream, its thread or its context.
Then the slice's limits hold again. And a stream is not taken for another one that had its handle."""

from tests.system.harness import driver_calls, instance

MOST = 2
CONFINED = f"on {MOST} (a green context) until it ends"

PROGRAM = (
    driver_calls.CALLS
    + r"""
import sys, threading, time
PTX = b'''
.version 7.0
.target sm_70
.address_size 64
.visible .entry as_it_is(.param .u64 value)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  mov.u64 %rd2, %gridid;
  ld.param.u64 %rd1, [value];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
'''
P, U32, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
LEGACY, PER_THREAD = P(1), P(2)
HOST = ctypes.CFUNCTYPE(None, P)
call("cuInit", 0)
context = made("cuDevicePrimaryCtxRetain", 0)
def set_up():
    global kernel, value, apart
    call("cuCtxSetCurrent", context)
    apart = made("cuStreamCreate", 1)
    kernel = made("cuModuleGetFunction", made("cuModuleLoadData", PTX), b"as_it_is")
    value = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(value), SIZE(4))
set_up()
def launch(on):
    pointers = (P * 1)(ctypes.cast(ctypes.byref(value), P))
    call("cuLaunchKernel", kernel, 16, 1, 1, 32, 1, 1, 0, on, pointers, None)
def look():
    launch(apart)
    call("cuStreamSynchronize", apart)
def in_thread(do):
    def run():
        call("cuCtxSetCurrent", context)
        do()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
def new_stream(flags=1): return made("cuStreamCreate", flags)
def other_context(do):
    other = P()
    call("cuCtxCreate_v2", ctypes.byref(other), 0, 0)
    do()
    call("cuCtxDestroy_v2", other)
    call("cuCtxSetCurrent", context)
def begin(on): call("cuStreamBeginCapture_v2", on, 2)

def capture_given_up_with_its_stream():
    on = new_stream()
    begin(on)
    call("cuStreamDestroy_v2", on)
def capture_invalidated():
    on, graph = new_stream(), P()
    begin(on)
    cuda.cuStreamQuery(on)
    cuda.cuStreamEndCapture(on, ctypes.byref(graph))
def capture_given_up_with_its_context():
    other_context(lambda: begin(new_stream()))
def capture_given_up_with_its_thread():
    in_thread(lambda: begin(PER_THREAD))
def capture_refused():
    on, graph = new_stream(), P()
    begin(on)
    assert cuda.cuStreamBeginCapture_v2(on, 2) != 0
    call("cuStreamEndCapture", on, ctypes.byref(graph))

go_on = threading.Event()
waits, nothing = HOST(lambda data: go_on.wait()), HOST(lambda data: None)
def let_go():
    time.sleep(0.05)
    go_on.set()
def wait_of_a_thread_that_ended():
    in_thread(lambda: call("cuLaunchHostFunc", PER_THREAD, waits, None))
    let_go()
def wait_of_a_stream_that_was_destroyed():
    on = new_stream()
    call("cuLaunchHostFunc", on, waits, None)
    call("cuStreamDestroy_v2", on)
    let_go()
def wait_in_another_context():
    other_context(lambda: call("cuLaunchHostFunc", LEGACY, nothing, None))
def wait_in_the_legacy_stream_of_a_context_that_is_not_current():
    global kept
    kept = P()
    call("cuCtxCreate_v2", ctypes.byref(kept), 0, 0)
    call("cuLaunchHostFunc", LEGACY, waits, None)
    call("cuCtxSetCurrent", context)
    let_go()
def wait_of_a_stream_that_was_captured():
    on = new_stream()
    call("cuLaunchHostFunc", on, waits, None)
    begin(on)
    call("cuStreamDestroy_v2", on)
    let_go()

def priorities():
    for _ in range(8): made("cuStreamCreateWithPriority", 1, -3)
    call("cuDevicePrimaryCtxReset_v2", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    set_up()
    wrong, told = 0, ctypes.c_int()
    for _ in range(64):
        call("cuStreamGetPriority", new_stream(), ctypes.byref(told))
        wrong += told.value != 0
    return wrong
def reset(version="_v2"):
    look()
    call("cuDevicePrimaryCtxReset" + version, 0)
    active = ctypes.c_int()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuDevicePrimaryCtxRelease" + version, 0)
    set_up()
    look()
    call("cuDevicePrimaryCtxRelease" + version, 0)
    call("cuDevicePrimaryCtxGetState", 0, ctypes.byref(U32()), ctypes.byref(active))
    return active.value
def reset_by_the_older_functions(): return reset("")
look()
print("ready", flush=True)
for line in sys.stdin:
    what = line.strip()
    print(globals()[what]() or 0, flush=True)
"""
)
CAPTURES = (
    "capture_given_up_with_its_stream",
    "capture_invalidated",
    "capture_given_up_with_its_context",
    "capture_given_up_with_its_thread",
    "capture_refused",
)
WAITS = (
    "wait_of_a_thread_that_ended",
    "wait_of_a_stream_that_was_destroyed",
    "wait_in_another_context",
    "wait_in_the_legacy_stream_of_a_context_that_is_not_current",
    "wait_of_a_stream_that_was_captured",
)


class StreamEnds(instance.SystemTest):
    warp_instruction_ns = 0

    def assertConfined(self, program, what):
        """Its next launches are; the first of them may still find the stream at its wait."""

        def confined():
            program.ask("look")
            said = next(kernel for kernel in self.kernels_of(program, "as_it_is") if kernel["name"] == "as_it_is")
            return CONFINED in said["reason"]

        instance.wait_until(confined, f"launches to be confined after {what}", interval=0.1)

    def test_limits_hold_again(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s", "--max", MOST)
        for what in (*CAPTURES, *WAITS):
            with self.subTest(what=what):
                program = self.start_script_in("s", PROGRAM)
                self.assertEqual(program.ask(what), "0")
                self.assertConfined(program, what)
                program.end()

    def test_limits_that_come_later_hold(self):
        """What was put into streams while nothing was in force."""
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s")
        for what in WAITS:
            with self.subTest(what=what):
                self.gpuctl("set", "s", "max=none")
                program = self.start_script_in("s", PROGRAM)
                self.assertEqual(program.ask(what), "0")
                self.gpuctl("set", "s", f"max={MOST}")
                self.assertConfined(program, what)
                program.end()

    def test_streams_that_are_gone_leave_no_priority(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s")
        program = self.start_script_in("s", PROGRAM)
        self.assertEqual(program.ask("priorities"), "0")

    def test_a_reset_context_ends_with_its_last_release(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s", "--max", MOST)
        for what in ("reset", "reset_by_the_older_functions"):
            with self.subTest(what=what):
                program = self.start_script_in("s", PROGRAM)
                self.assertConfined(program, "its start")
                self.assertEqual(program.ask(what), "0")
                program.end()


if __name__ == "__main__":
    instance.main()
