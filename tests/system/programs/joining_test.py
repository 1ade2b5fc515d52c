"""Launches that are confined follow one another without a word to the program's stream; whoever looks at what that
stream has done, in whichever way, sees all of them done."""

import re

from tests.system.harness import driver_calls, instance

MOST = 4
MANY = 12
STORM_US = 5000  # between two random grants
SEEDS = (100, 200, 300)
ROUNDS = 40

# Launches slow kernels that cannot be rewritten into a stream, then looks, in the way it is told, at what they have
# made of `values`: prints how many are wrong. Looking is a copy to `copied` that must come behind the kernels.
PROGRAM = (
    driver_calls.CALLS
    + r"""
import random, sys, threading, time
HEAD = '''
.version 7.0
.target sm_80
.address_size 64
'''
ENTRY = '''
.visible .entry NAME(.param .u64 values, .param .u32 round, .param .u32 nanoseconds)
{
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .b64 %rd<7>;
  SPECIAL
  mov.u32 %r5, %tid.x;
  setp.ne.u32 %p, %r5, 0;
  @%p ret;
  ld.param.u64 %rd0, [values];
  ld.param.u32 %r0, [round];
  ld.param.u32 %r1, [nanoseconds];
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd0, %rd2;
  nanosleep.u32 %r1;
  ld.global.u32 %r3, [%rd3];
  mad.lo.u32 %r4, %r3, 31, %r0;
  st.global.u32 [%rd3], %r4;
  ret;
}
'''
APPEND = ENTRY.replace("NAME", "append").replace("SPECIAL", "mov.u64 %rd6, %gridid;")
PTX = HEAD + APPEND + ENTRY.replace("NAME", "rewritten").replace("SPECIAL", "")
P, SIZE, U32 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
LEGACY, PER_THREAD = P(1), P(2)
call("cuInit", 0)
context = made("cuDevicePrimaryCtxRetain", 0)
call("cuCtxSetCurrent", context)
module = made("cuModuleLoadData", PTX.encode())
functions = {name: made("cuModuleGetFunction", module, name.encode()) for name in ("append", "rewritten")}
BLOCKS, NS = 32, 5_000_000
BYTES = SIZE(4 * BLOCKS)
def memory(count):
    result = ctypes.c_uint64()
    call("cuMemAllocManaged", ctypes.byref(result), SIZE(4 * count), 1)
    return result
values, copied, word = memory(BLOCKS), memory(BLOCKS), memory(1)
def seen(where): return list((U32 * BLOCKS).from_address(where.value))
aside = made("cuStreamCreate", 1)
HOST = ctypes.CFUNCTYPE(None, P)
CALLBACK = ctypes.CFUNCTYPE(None, P, ctypes.c_int, P)
expected = 0
def launch_on(on, where, before, name="append", nanoseconds=NS):
    # What `where` holds then, if it holds `before`.
    number = U32(before % 7 + 1)
    parameters = [where, number, U32(nanoseconds)]
    pointers = (P * 3)(*[ctypes.cast(ctypes.byref(one), P) for one in parameters])
    call("cuLaunchKernel", functions[name], BLOCKS, 1, 1, 1024, 1, 1, 0, on, pointers, None)
    return (before * 31 + number.value) % 2**32
def launch(on, name="append"):
    global expected
    expected = launch_on(on, values, expected, name)
def copy(on): call("cuMemcpyDtoDAsync_v2", copied, values, BYTES, on)
def copy_aside():
    copy(aside)
    call("cuStreamSynchronize", aside)

def by_copy(on): copy(on)
def by_other_copy(on): call("cuMemcpyAsync", copied, values, BYTES, on)
def by_ptsz(on): call("cuMemcpyAsync_ptsz", copied, values, BYTES, on)
def by_plain_copy(on): call("cuMemcpyDtoD_v2", copied, values, BYTES)
def by_plain_memset(on):
    global expected
    call("cuMemsetD32_v2", values, 5, SIZE(BLOCKS))
    expected = 5
    by_context_synchronize(on)
def by_memset(on):
    global expected
    call("cuMemsetD32Async", values, 6, SIZE(BLOCKS), on)
    expected = 6
    by_context_synchronize(on)
def by_event(on):
    event = made("cuEventCreate", 2)
    call("cuEventRecord", event, on)
    call("cuStreamWaitEvent", aside, event, 0)
    copy(aside)
def by_event_with_flags(on):
    event = made("cuEventCreate", 2)
    call("cuEventRecordWithFlags", event, on, 0)
    call("cuEventSynchronize", event)
    copy_aside()
def by_stream_synchronize(on):
    call("cuStreamSynchronize", on)
    copy_aside()
def by_stream_query(on):
    while cuda.cuStreamQuery(on) == 600: time.sleep(0.001)
    copy_aside()
def by_context_synchronize(on):
    call("cuCtxSynchronize")
    copy_aside()
def by_host_function(on):
    done = threading.Event()
    function = HOST(lambda data: done.set())
    call("cuLaunchHostFunc", on, function, None)
    done.wait()
    copy_aside()
def by_callback(on):
    done = threading.Event()
    function = CALLBACK(lambda stream, code, data: done.set())
    call("cuStreamAddCallback", on, function, None, 0)
    done.wait()
    copy_aside()
def by_written_word(on):
    there = U32.from_address(word.value)
    there.value = 0
    call("cuStreamWriteValue32_v2", on, word, 1, 0)
    while there.value == 0: time.sleep(0.001)
    copy_aside()
def by_graph(on):
    call("cuGraphLaunch", in_graph(), on)
def by_known_graph(on):
    call("cuGraphLaunch", known_graph, on)
def by_capture(on):
    # Where a capture goes on, launches go to the program's stream as they are.
    call("cuStreamBeginCapture_v2", aside, 2)
    launch(on)
    call("cuStreamEndCapture", aside, ctypes.byref(P()))
    copy(on)
def by_rewritten_kernel(on):
    launch(on, "rewritten")
    copy(on)
def by_another_launch(on):
    launch(on)
    copy(on)
def by_changed_priority(on):
    value = (ctypes.c_byte * 64)()
    value[0] = -1
    call("cuStreamSetAttribute", on, 8, value)
    launch(on)
    copy(on)
def by_blocking_stream(on):
    other = made("cuStreamCreate", 0)
    copy(other)
def by_legacy_stream(on): copy(LEGACY)
def by_legacy_launch(on):
    launch(LEGACY)
    copy(LEGACY)
def by_blocking_launch(on):
    other = made("cuStreamCreate", 0)
    launch(other)
    copy(other)
def by_launch_behind_event(on):
    event = made("cuEventCreate", 2)
    call("cuEventRecord", event, on)
    call("cuStreamWaitEvent", aside, event, 0)
    launch(aside)
    copy(aside)
def by_end_of_stream(on):
    call("cuStreamDestroy_v2", on)
    call("cuCtxSynchronize")
    copy_aside()
def by_freed_memory(on):
    some = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(some), SIZE(4))
    call("cuMemFree_v2", some)
    copy(on)
def by_followers(on):
    event = made("cuEventCreate", 2)
    copy(on)
    launch(on)
    call("cuMemsetD32Async", word, 1, SIZE(1), on)
    call("cuEventRecord", event, on)
    launch(on)
    call("cuStreamWaitEvent", on, event, 0)
    launch(on)
    copy(on)
def by_another_thread(on):
    def look():
        call("cuCtxSetCurrent", context)
        copy(on)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

def work(kind, rounds, seed, wrong):
    # Mixes launches with what looks at them, in a stream of its own and with memory of its own.
    call("cuCtxSetCurrent", context)
    choose = random.Random(seed)
    on = LEGACY if kind == "legacy" else made("cuStreamCreate", int(kind == "non-blocking"))
    mine, taken = memory(BLOCKS), memory(BLOCKS)
    event, holds = made("cuEventCreate", 2), 3
    call("cuMemsetD32Async", mine, holds, SIZE(BLOCKS), on)
    for _ in range(rounds):
        for _ in range(choose.randint(1, 4)):
            holds = launch_on(on, mine, holds, choose.choice(("append", "append", "append", "rewritten")), 100_000)
        way = choose.randint(0, 4)
        if way == 0:
            call("cuMemcpyDtoDAsync_v2", taken, mine, BYTES, on)
            call("cuMemsetD32Async", mine, 99, SIZE(BLOCKS), on)
            call("cuMemcpyDtoDAsync_v2", mine, taken, BYTES, on)
        elif way == 1:
            call("cuStreamSynchronize", on)
            wrong.append(sum(value != holds for value in seen(mine)))
        elif way == 2:
            call("cuEventRecord", event, on)
            call("cuEventSynchronize", event)
            wrong.append(sum(value != holds for value in seen(mine)))
        elif way == 3:
            holds = 7
            call("cuMemsetD32Async", mine, holds, SIZE(BLOCKS), on)
    call("cuStreamSynchronize", on)
    wrong.append(sum(value != holds for value in seen(mine)))

def in_graph():
    call("cuStreamBeginCapture_v2", aside, 0)
    copy(aside)
    graph = P()
    call("cuStreamEndCapture", aside, ctypes.byref(graph))
    return made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
known_graph = in_graph()
print("ready", flush=True)
for line in sys.stdin:
    kind, count, way = line.split()
    if kind == "threads":
        wrong = []
        kinds = ("non-blocking", "non-blocking", "blocking", "legacy")
        threads = [
            threading.Thread(target=work, args=(kind, int(count), int(way) + number, wrong))
            for number, kind in enumerate(kinds)
        ]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sum(wrong), len(wrong) > 0, flush=True)
        continue
    of_all = {"legacy": LEGACY, "per-thread": PER_THREAD}
    on = of_all[kind] if kind in of_all else made("cuStreamCreate", int(kind == "non-blocking"))
    expected = 3
    for one in (values, copied): call("cuMemsetD32Async", one, 3, SIZE(BLOCKS), on)
    call("cuStreamSynchronize", on)
    for _ in range(int(count)): launch(on)
    globals()["by_" + way](on)
    for _ in range(2):
        code = cuda.cuCtxSynchronize()
    print(sum(value != expected for value in seen(copied)), code, flush=True)
"""
)
WAYS = (
    "copy",
    "other_copy",
    "memset",
    "event",
    "event_with_flags",
    "stream_synchronize",
    "stream_query",
    "context_synchronize",
    "host_function",
    "callback",
    "written_word",
    "graph",
    "known_graph",
    "capture",
    "rewritten_kernel",
    "another_launch",
    "changed_priority",
    "launch_behind_event",
    "freed_memory",
    "followers",
    "another_thread",
)
BY_LEGACY = ("plain_copy", "plain_memset", "legacy_stream", "legacy_launch")


class Joining(instance.SystemTest):
    warp_instruction_ns = 0

    def start_program(self, *options):
        self.log = self.scratch / "log"
        self.env["GPUSLICE_DEBUG"] = str(self.log)
        self.start_daemon(*options)
        self.gpuctl("create-slice", "s", "--max", MOST)
        self.program = self.start_script_in("s", PROGRAM)

    def look(self, kind, ways):
        self.start_program()
        for way in ways:
            with self.subTest(stream=kind, way=way):
                self.assertEqual(self.program.ask(kind, 3, way), "0 0")

    def in_a_row(self):
        """How many launches followed one another each time a stream joined them."""
        return [int(count) for count in re.findall(r"joins (\d+) launches on", self.log.read_text())]

    def test_a_stream_apart(self):
        self.look("non-blocking", (*WAYS, "end_of_stream"))

    def test_a_blocking_stream(self):
        self.look("blocking", (*WAYS, *BY_LEGACY, "end_of_stream"))

    def test_the_legacy_stream(self):
        self.look("legacy", (*WAYS, *BY_LEGACY, "blocking_stream", "blocking_launch"))

    def test_the_stream_of_a_thread(self):
        self.look(
            "per-thread",
            (
                "copy",
                "ptsz",
                "event",
                "stream_synchronize",
                "another_launch",
                "rewritten_kernel",
                "legacy_stream",
                "legacy_launch",
            ),
        )
        self.assertNotIn("stream 0x2 joins", self.log.read_text(), "no other thread could have it join")

    def test_nothing_comes_between_launches(self):
        """Of a stream that the program is not far ahead with: who waits for the GPU has it join."""
        self.start_program()
        self.assertEqual(self.program.ask("non-blocking", MANY, "copy"), "0 0")
        self.assertIn(MANY, self.in_a_row())

    def test_copies_memsets_and_events_follow(self):
        self.start_program()
        self.assertEqual(self.program.ask("non-blocking", MANY, "followers"), "0 0")
        self.assertIn(MANY + 3, self.in_a_row())

    def test_threads_while_grants_change(self):
        self.start_program("--evict-storm", STORM_US)
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assertEqual(self.program.ask("threads", ROUNDS, seed), "0 True")


if __name__ == "__main__":
    instance.main()
