"""A stream waits for a value, or for a host function, that the program gives later. What the program does before goes
on as it does without gpuctl, although launches in persistent form wait in that stream and cannot be waited for."""

from tests.system.harness import driver_calls, instance

GRAPH_KERNELS = 1000
LAUNCHES = 400  # more than may be outstanding in a stream (kMaxQueuedPerStream)
GRAPHS = 5  # of so many kernels: more than there are launch blocks

PROGRAM = (
    driver_calls.CALLS
    + f"GRAPH_KERNELS, LAUNCHES, GRAPHS = {GRAPH_KERNELS}, {LAUNCHES}, {GRAPHS}"
    + r"""
import sys, threading, time
HEAD = '''
.version 7.0
.target sm_70
.address_size 64
'''
ENTRY = '''
.visible .entry NAME(.param .u64 values)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [values];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, 1;
  red.global.add.u32 [%rd3], %r2;
  ret;
}
'''
P, U32, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
BLOCKS = 128
HOST = ctypes.CFUNCTYPE(None, P)
call("cuInit", 0)
context = made("cuDevicePrimaryCtxRetain", 0)
call("cuCtxSetCurrent", context)
values = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(values), SIZE(4 * BLOCKS))
call("cuMemsetD32_v2", values, 0, SIZE(BLOCKS))
word, at = P(), ctypes.c_uint64()
call("cuMemHostAlloc", ctypes.byref(word), SIZE(64), 2)
call("cuMemHostGetDevicePointer_v2", ctypes.byref(at), word, 0)
given = U32.from_address(word.value)
go_on = threading.Event()
waits = HOST(lambda data: go_on.wait())
waiting, other = made("cuStreamCreate", 1), made("cuStreamCreate", 1)
expected = 0
def load(name):
    module = made("cuModuleLoadData", (HEAD + ENTRY.replace("NAME", name)).encode())
    return made("cuModuleGetFunction", module, name.encode())
def launch(kernel, on):
    global expected
    pointers = (P * 1)(ctypes.cast(ctypes.byref(values), P))
    call("cuLaunchKernel", kernel, BLOCKS, 1, 1, 32, 1, 1, 0, on, pointers, None)
    expected += 1
def captured(kernels):
    global expected
    graph = P()
    before = expected
    call("cuStreamBeginCapture_v2", waiting, 2)
    for _ in range(kernels): launch(first, waiting)
    call("cuStreamEndCapture", waiting, ctypes.byref(graph))
    expected = before
    return graph
def instantiated(graph): return made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
first, number = load("first"), 0
launch(first, waiting)
call("cuCtxSynchronize")
class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("meta", P), ("flags", SIZE)]
def physical():
    properties, handle = Properties(1, 0, Location(1, 0)), ctypes.c_uint64()
    call("cuMemCreate", ctypes.byref(handle), SIZE(2 << 20), ctypes.byref(properties), ctypes.c_ulonglong(0))
    return handle

# Each prepares something, and returns what is done while the stream waits.
def first_launch():
    global number
    number += 1
    kernel = load(f"kernel_{number}")
    return lambda: launch(kernel, other)
def instantiate():
    graph = captured(3)
    def do():
        global expected
        call("cuGraphLaunch", instantiated(graph), other)
        expected += 3
    return do
def release():
    handle = physical()
    return lambda: call("cuMemRelease", handle)
def many_launches():
    def do():
        for _ in range(LAUNCHES): launch(first, waiting)
    return do
def many_graphs():
    graph = instantiated(captured(GRAPH_KERNELS))
    def do():
        global expected
        for _ in range(GRAPHS): call("cuGraphLaunch", graph, waiting)
        expected += GRAPHS * GRAPH_KERNELS
    return do
def another_thread():
    # One thread frees memory, which lasts until the value is there; the other one launches before it gives it.
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), SIZE(4))
    def free():
        call("cuCtxSetCurrent", context)
        call("cuMemFree_v2", memory)
    def do():
        global freeing
        freeing = threading.Thread(target=free)
        freeing.start()
        time.sleep(0.1)
        launch(first, other)
    return do
freeing = None
print("ready", flush=True)
for line in sys.stdin:
    what, waits_for = line.split()
    do = globals()[what]()
    given.value = 0
    go_on.clear()
    if waits_for == "value": call("cuStreamWaitValue32_v2", waiting, at, 1, 0)
    else: call("cuLaunchHostFunc", waiting, waits, None)
    launch(first, waiting)
    do()
    given.value = 1
    go_on.set()
    if freeing: freeing.join()
    call("cuCtxSynchronize")
    found = (U32 * BLOCKS)()
    call("cuMemcpyDtoH_v2", found, values, SIZE(4 * BLOCKS))
    print(sum(value != 32 * expected for value in found), flush=True)
"""
)


class HeldUp(instance.SystemTest):
    warp_instruction_ns = 1

    def assertGoesOn(self, *things):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        for what in things:
            for waits_for in ("value", "host"):
                with self.subTest(what=what, waits_for=waits_for):
                    program = self.start_script_in("s", PROGRAM)
                    self.assertEqual(program.ask(what, waits_for), "0")
                    forms = {kernel["name"]: kernel["form"] for kernel in self.kernels_of(program, "first")}
                    self.assertEqual(forms["first"], "persistent")
                    program.end()

    def test_calls_that_may_block_in_the_driver(self):
        self.assertGoesOn("first_launch", "instantiate", "release", "another_thread")

    def test_more_launches_than_there_is_room_for(self):
        self.assertGoesOn("many_launches")

    def test_more_kernels_in_graphs_than_there_is_room_for(self):
        self.assertGoesOn("many_graphs")


if __name__ == "__main__":
    instance.main()
