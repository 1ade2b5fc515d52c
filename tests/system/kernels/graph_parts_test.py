"""Graphs are confined too, as copies whose kernels run in their slice's part of the GPU: with the results of the
program's own graph, whichever of the two was launched last."""

from tests.system.harness import instance
from tests.system.sharing import opaque_test, reserve_by_parts_test

ANY = 2**instance.SMS - 1

# Makes graphs, as it is told, that append two numbers to what they find, one behind the other, with a memset beside
# them, and launches them.
GRAPHS = """
streams = [stream("non-blocking") for _ in range(2)]
fork, join = POINTER(), POINTER()
for event in (fork, join): call("cuEventCreate", ctypes.byref(event), 2)
def captured(number, kind):
    graph, (on, side) = POINTER(), streams
    call("cuStreamBeginCapture_v2", on, 2)
    append(on, number, 1000)
    call("cuEventRecord", fork, on)
    call("cuStreamWaitEvent", side, fork, 0)
    call("cuMemsetD32Async", copied, number, SIZE(BLOCKS), side)
    call("cuEventRecord", join, side)
    append(on, number + 1, 1000)
    call("cuStreamWaitEvent", on, join, 0)
    call("cuStreamEndCapture", on, ctypes.byref(graph))
    if kind != "nested": return graph
    outer, node = made("cuGraphCreate", 0), POINTER()
    call("cuGraphAddChildGraphNode", ctypes.byref(node), outer, None, SIZE(0), graph)
    call("cuGraphDestroy", graph)
    return outer
def instantiate(kind):
    global graph, executable
    graph = captured(1, kind)
    executable = made("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(8))  # node priorities count
    if kind == "destroyed": call("cuGraphDestroy", graph)
def count(launches, numbers):
    left = WHAT
    for _ in range(launches):
        for number in numbers: left = (left * 31 + number) & 0xffffffff
    return left
def launch(launches, numbers):
    call("cuMemsetD32_v2", values, WHAT, SIZE(BLOCKS))
    call("cuMemsetD32_v2", seen, 0, SIZE(1))
    call("cuCtxSynchronize")
    for number in range(launches): call("cuGraphLaunch", executable, streams[number % 2])
    call("cuCtxSynchronize")
    words, mask = (ctypes.c_uint32 * BLOCKS)(), ctypes.c_uint32()
    call("cuMemcpyDtoH_v2", words, values, BYTES)
    call("cuMemcpyDtoH_v2", ctypes.byref(mask), seen, SIZE(4))
    right = all(word == count(launches, numbers) for word in words)
    return f"{'right' if right else 'wrong'} {mask.value}"
print("ready", flush=True)
numbers = (1, 2)
for line in sys.stdin:
    what, *more = line.split()
    if what == "make":
        instantiate(*more)
        numbers = (1, 2)
        print("made", flush=True)
    elif what == "launch":
        print(launch(int(more[0]), numbers), flush=True)
    elif what == "update":
        other, info = captured(5, "kept"), (ctypes.c_uint64 * 4)()
        call("cuGraphExecUpdate_v2", executable, other, info)
        numbers = (5, 6)
        print("updated", flush=True)
    elif what == "set":
        # The graph writes another number beside its kernels.
        nodes, size, kind, parameters = (POINTER * 8)(), SIZE(8), ctypes.c_int(), (ctypes.c_uint32 * 10)()
        call("cuGraphGetNodes", graph, nodes, ctypes.byref(size))
        for node in map(POINTER, nodes[: size.value]):
            call("cuGraphNodeGetType", node, ctypes.byref(kind))
            if kind.value == 2: memset = node
        call("cuGraphMemsetNodeGetParams", memset, parameters)
        parameters[4] = int(more[0])
        context = made("cuCtxGetCurrent")
        call("cuGraphExecMemsetNodeSetParams", executable, memset, parameters, context)
        print("set", flush=True)
    elif what == "beside":
        word = ctypes.c_uint32()
        call("cuMemcpyDtoH_v2", ctypes.byref(word), copied, SIZE(4))
        print(word.value, flush=True)
    elif what == "alter":
        # The program's own graph, which it then destroys: what was instantiated stays as it is.
        nodes, size = (POINTER * 8)(), SIZE(8)
        call("cuGraphGetRootNodes", graph, nodes, ctypes.byref(size))
        call("cuGraphDestroyNode", POINTER(nodes[0]))
        call("cuGraphDestroy", graph)
        print("altered", flush=True)
    elif what == "end":
        call("cuGraphExecDestroy", executable)
        call("cuDevicePrimaryCtxReset_v2", 0)
        set_up()
        streams = [stream("non-blocking") for _ in range(2)]
        for event in (fork, join): call("cuEventCreate", ctypes.byref(event), 2)
        print("ended", flush=True)
"""


def with_graphs(program):
    """The program up to its loop, and then another one."""
    return program[: program.index('print("ready"')].replace("WHAT", "what") + GRAPHS.replace("WHAT", "7")


OPAQUE, PROGRAM = (with_graphs(program) for program in (opaque_test.PROGRAM, reserve_by_parts_test.PROGRAM))


class GraphParts(instance.SystemTest):
    warp_instruction_ns = 0

    def start_program(self, program=OPAQUE, kind="destroyed", most=4, **env):
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "batch", "--max", most)
        self.start_in_batch(program, kind, **env)

    def start_in_batch(self, program, kind, **env):
        self.program = self.start_script_in("batch", program, **env)
        self.assertEqual(self.program.ask("make", kind), "made")

    def make_beside_a_reserve(self, kind):
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-mode", "strict")
        instance.wait_until(
            lambda: self.usage("batch", self.program.pid)["in_force"] == "reserve", "the reserve to be in force"
        )
        self.assertEqual(self.program.ask("make", kind), "made")

    def launch(self, launches=6):
        """Launches the graph in two streams by turns, with right results. The SMs that its kernels ran on."""
        right, mask = self.program.ask("launch", launches).split()
        self.assertEqual(right, "right")
        return int(mask)

    def explains(self, what):
        return what in self.gpuctl("explain", self.program.pid).stdout

    def test_of_every_kind(self):
        self.start_program()
        for program in (OPAQUE, PROGRAM):
            for kind in ("destroyed", "kept", "nested"):
                with self.subTest(kind=kind, can_be_evicted=program is PROGRAM):
                    self.program.end()
                    self.start_in_batch(program, kind)
                    self.assertEqual(self.launch(), 0b1111)
                    instance.wait_until(lambda: self.explains("on 4 (a green context)"), "it to be said")
                    self.assertEqual(self.usage("batch", self.program.pid)["block_tasks"], 0)

    def test_live(self):
        self.start_program()
        for most in (2, 6, "none", 4):
            mask = ANY if most == "none" else 2**most - 1
            self.gpuctl("set", "batch", f"max={most}")
            instance.wait_until(lambda: self.launch() == mask, f"launches on {most} SMs")

    def test_live_while_it_launches(self):
        self.start_program()
        self.assertEqual(self.launch(), 0b1111)
        self.program.process.stdin.write("launch 1000\n")
        self.program.process.stdin.flush()
        for most in (2, "none", 6, 4, "none", 2):
            self.gpuctl("set", "batch", f"max={most}")
        self.assertEqual(self.program.answer("the launches").split()[0], "right")

    def test_beside_a_strict_reserve(self):
        self.start_program(most="none")
        self.make_beside_a_reserve("destroyed")
        instance.wait_until(lambda: self.launch().bit_count() == instance.SMS - 2, "launches beside the reserve")

    def test_one_from_before_a_reserve_was_kept(self):
        """While nothing is in force a graph is only cloned, and only where a reserve may be kept later."""
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-mode", "active")
        self.gpuctl("create-slice", "batch")
        self.start_in_batch(PROGRAM, "destroyed")
        self.assertEqual(self.launch(), ANY)
        busy = self.start_bench("ls", "work", "--blocks", 2, "--iterations", 20, "--seconds", 60)
        instance.wait_until(
            lambda: self.launch().bit_count() == instance.SMS - 2, "launches beside the reserve", interval=0.05
        )
        busy.stop()
        instance.wait_until(lambda: self.launch() == ANY, "launches on all SMs")
        # One that is changed before that is not confined, and runs as it was changed.
        self.assertEqual(self.program.ask("make", "kept"), "made")
        self.assertEqual(self.program.ask("update"), "updated")
        self.start_bench("ls", "work", "--blocks", 2, "--iterations", 20, "--seconds", 60)
        instance.wait_until(
            lambda: self.usage("batch", self.program.pid)["common_sms"] == instance.SMS - 2, "the reserve to be kept"
        )
        self.assertEqual(self.launch(), ANY)

    def test_what_the_program_does_to_its_graph_later_changes_nothing(self):
        self.start_program(most="none")
        self.make_beside_a_reserve("kept")
        self.assertEqual(self.program.ask("alter"), "altered")
        instance.wait_until(lambda: self.launch().bit_count() == instance.SMS - 2, "launches beside the reserve")

    def test_a_changed_one_runs_as_it_was_changed(self):
        self.start_program()
        self.assertEqual(self.launch(), 0b1111)
        self.assertEqual(self.program.ask("update"), "updated")
        self.assertEqual(self.launch(), ANY)
        instance.wait_until(lambda: self.explains("an executable graph that the program has changed"), "it to be said")
        self.assertEqual(self.program.ask("make", "destroyed"), "made")
        self.assertEqual(self.launch(), 0b1111)

    def test_so_does_one_of_which_another_node_was_changed(self):
        self.start_program(kind="kept")
        self.assertEqual(self.launch(), 0b1111)
        self.assertEqual(self.program.ask("beside"), "1")
        self.assertEqual(self.program.ask("set", 9), "set")
        self.assertEqual(self.launch(), ANY)
        self.assertEqual(self.program.ask("beside"), "9")

    def test_what_the_driver_refuses_ends_no_program(self):
        """The graph then runs on any SMs, or a later launch is confined."""
        calls = {
            "cuGraphClone": (1, 2),
            "cuGraphNodeGetDependencies_v2": (1,),
            "cuStreamBeginCaptureToGraph": (1,),
            "cuStreamUpdateCaptureDependencies_v2": (1, 2),
            "cuStreamGetCaptureInfo_v3": (1,),
            "cuGraphAddDependencies_v2": (1, 2),
            "cuGraphDestroyNode": (1,),
            "cuGraphInstantiateWithFlags": (2,),  # the first is the program's
            "cuGraphLaunch": (1, 3),
            "cuGreenCtxCreate": (1,),
        }
        self.start_program()
        for function, numbers in calls.items():
            for number in numbers:
                with self.subTest(function, number=number):
                    self.program.end()
                    self.start_in_batch(OPAQUE, "kept", **self.env_of_refusal(function, number))
                    # Where the driver makes no part of pairs there is one of groups.
                    self.assertEqual(self.launch(), 0b1111 if function == "cuGreenCtxCreate" else ANY)
                    self.launch()
                    self.assertEqual(self.program.ask("make", "destroyed"), "made")
                    self.assertEqual(self.launch(), 0b1111)

    def test_what_is_refused_runs_in_original_form(self):
        """Its kernels were rewritten at the launch before, when they had to give SMs back."""
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "other", "--weight", 300)
        other = self.start_idle_in("other")
        launches = 6
        # A program whose first launches are of its own graph, and the next one is of a copy.
        self.program = self.start_script_in("batch", PROGRAM, **self.env_of_refusal("cuGraphLaunch", launches + 1))
        instance.wait_until(lambda: self.usage("batch", self.program.pid), "it to attach")
        instance.wait_until(lambda: self.usage("batch", self.program.pid)["in_force"] == "weights", "the weights")
        self.assertEqual(self.program.ask("make", "kept"), "made")
        self.launch(launches)
        self.assertGreater(self.usage("batch", self.program.pid)["block_tasks"], 0)
        other.kill()
        self.gpuctl("set", "batch", "max=4")
        instance.wait_until(lambda: self.usage("batch", self.program.pid)["common_sms"] == 4, "the part in common")
        self.assertEqual(self.launch(), ANY)

    def test_the_context_ends(self):
        self.start_program()
        for _ in range(3):
            self.assertEqual(self.launch(), 0b1111)
            self.assertEqual(self.program.ask("end"), "ended")
            self.assertEqual(self.program.ask("make", "destroyed"), "made")
        self.assertEqual(self.launch(), 0b1111)


if __name__ == "__main__":
    instance.main()
