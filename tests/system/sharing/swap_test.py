"""freeze --swap: the memory of programs that have nothing on the GPU is for others, and theirs again after thaw."""

import os
import signal
import sys

from tests.system.harness import instance
from tests.system.harness.driver_calls import CALLS
from tests.system.harness.slice_shell import LONG, SliceShell

MIB = 1 << 20
SUCCESS, OUT_OF_MEMORY = 0, 2
HELD_MIB = 64  # of 96

# Answers each line with one: the driver's code, or how often the kernel has run by what its memory says.
PROGRAM = (
    CALLS
    + """
import sys
PTX = b'''
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 word)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [word];
  atom.global.add.u32 %r0, [%rd0], 1;
  ret;
}
'''
call("cuInit", 0)
call("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))
add = made("cuModuleGetFunction", made("cuModuleLoadData", PTX), b"add")
held = ctypes.c_uint64()
print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    if verb == "allocate":
        size = ctypes.c_uint64(int(words[0]) << 20)
        code = cuda.cuMemAlloc_v2(ctypes.byref(held), size)
        if code == 0: call("cuMemsetD8_v2", held, 0, size)
        print(code, flush=True)
    elif verb == "free":
        print(cuda.cuMemFree_v2(held), flush=True)
    elif verb == "free-at-exit":
        print(ctypes.CDLL(None).__cxa_atexit(cuda.cuMemFree_v2, held, None), flush=True)
    elif verb == "managed":
        print(cuda.cuMemAllocManaged(ctypes.byref(ctypes.c_uint64()), ctypes.c_uint64(64), 1), flush=True)
    elif verb == "managed-pool":
        properties = (ctypes.c_int * 64)(2, 0, 1, 0)  # managed memory of device 0
        print(cuda.cuMemPoolCreate(ctypes.byref(ctypes.c_void_p()), properties), flush=True)
    elif verb == "step":
        last = ctypes.c_uint64(held.value + (int(words[0]) << 20) - 4)
        parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(last), ctypes.c_void_p))
        call("cuLaunchKernel", add, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
        count = ctypes.c_uint32()
        call("cuMemcpyDtoH_v2", ctypes.byref(count), last, 4)
        print(count.value, flush=True)
"""
)

# The kernel's module has a managed variable.
MANAGED = PROGRAM.replace(
    ".visible .entry add(", ".visible .global .attribute(.managed) .align 4 .u32 shared_word;\n.visible .entry add("
)

# Another thread looks all the time at what the GPU has done, until a look fails; "looks" asks how often it has.
LOOKS = PROGRAM.replace(
    'print("ready", flush=True)',
    """
import threading
events = [made("cuEventCreate", 0) for _ in range(2)]
for event in events: call("cuEventRecord", event, None)
call("cuCtxSynchronize")
looks = [0]
def look(context):
    call("cuCtxSetCurrent", context)
    bytes_of = [ctypes.c_size_t(), ctypes.c_size_t()]
    while True:
        if cuda.cuStreamQuery(None) not in (0, 600): return
        call("cuEventQuery", events[0])
        call("cuEventSynchronize", events[0])
        call("cuStreamSynchronize", None)
        call("cuCtxSynchronize")
        call("cuEventElapsedTime_v2", ctypes.byref(ctypes.c_float()), *events)
        call("cuMemGetInfo_v2", *map(ctypes.byref, bytes_of))
        looks[0] += 1
threading.Thread(target=look, args=(made("cuCtxGetCurrent"),), daemon=True).start()
print("ready", flush=True)""",
).replace(
    '    elif verb == "free":',
    '    elif verb == "looks":\n        print(looks[0], flush=True)\n    elif verb == "free":',
)


class Swap(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.env["SOFTGPU_SHARED_MEMORY_MIB"] = "96"
        self.start_daemon()
        self.gpuctl("create-slice", "ice")
        self.gpuctl("create-slice", "ice/below")
        self.gpuctl("create-slice", "beside")

    def program(self, slice_path, script=PROGRAM, **env):
        return self.start_script_in(slice_path, script, **env)

    def holding(self, slice_path, script=PROGRAM, **env):
        """A program that holds most of the GPU's memory and has launched something."""
        program = self.program(slice_path, script, **env)
        self.assertEqual(program.ask("allocate", HELD_MIB), str(SUCCESS))
        self.assertEqual(program.ask("step", HELD_MIB), "1")
        return program

    def client(self, slice_path, program):
        return next((client for client in self.clients(slice_path) if client["pid"] == program.pid), None)

    def wait_for_memory(self, slice_path, program, held, swapped):
        def is_so():
            usage = self.usage(slice_path, program.pid)
            return usage and (usage["memory"], usage.get("swapped", 0)) == (held * MIB, swapped * MIB)

        instance.wait_until(is_so, f"{held} MiB to be held and {swapped} to be swapped", told=lambda: self.daemon.err())

    def wait_for_event(self, kind, times=1):
        def told():
            events = [event for event in self.call("Events")["events"] if event["kind"] == kind]
            return events[-1] if len(events) >= times else None

        return instance.wait_until(told, f"the event {kind}", told=lambda: self.daemon.err())

    def swapped(self):
        program = self.holding("ice/below")
        self.gpuctl("freeze", "--swap", "ice")
        self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        return program

    def test_another_program_has_the_memory_and_the_first_goes_on_later(self):
        program = self.holding("ice/below")
        other = self.program("beside")
        self.assertEqual(other.ask("allocate", HELD_MIB), str(OUT_OF_MEMORY))
        self.gpuctl("freeze", "--swap", "ice")
        self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        self.assertEqual(self.wait_for_event("swapped")["pid"], program.pid)
        self.assertEqual(self.client("ice/below", program)["state"], "swapped")
        self.assertIn("64M of its memory are on the host", self.gpuctl("explain", program.pid).stdout)
        shown = self.gpuctl("show", "ice/below").stdout
        self.assertIn("frozen        swapped: its programs get no SMs, and their memory goes to the host", shown)
        self.assertIn("64 MiB swapped", shown)
        program.tell("step", HELD_MIB)  # it waits
        self.assertEqual(other.ask("allocate", HELD_MIB), str(SUCCESS))
        self.assertEqual(other.ask("step", HELD_MIB), "1")
        self.assertEqual(other.ask("free"), str(SUCCESS))
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.answer("step"), "2")
        self.wait_for_memory("ice/below", program, HELD_MIB, 0)
        self.wait_for_event("restored")
        self.assertEqual(other.ask("allocate", HELD_MIB), str(OUT_OF_MEMORY))

    def test_looks_at_the_gpu_wait_while_memory_is_away(self):
        program = self.holding("ice", LOOKS)
        instance.wait_until(lambda: int(program.ask("looks")) > 0, "a look")
        for times in (1, 2):
            self.gpuctl("freeze", "--swap", "ice")
            self.wait_for_memory("ice", program, 0, HELD_MIB)
            before = program.ask("looks")
            self.assertEqual(program.ask("looks"), before)
            self.gpuctl("thaw", "ice")
            instance.wait_until(lambda: int(program.ask("looks")) > int(before), "a look")
            self.assertEqual(program.ask("step", HELD_MIB), str(times + 1))

    def test_a_thaw_without_room_waits_for_it(self):
        program = self.swapped()
        other = self.holding("beside")
        self.gpuctl("thaw", "ice")
        self.assertIn("no room", self.wait_for_event("not-restored")["text"])
        self.assertIn("no room", self.client("ice/below", program)["swap_now"])
        program.tell("step", HELD_MIB)
        self.assertEqual(other.ask("step", HELD_MIB), "2")
        self.assertEqual(other.ask("free"), str(SUCCESS))
        self.assertEqual(program.answer("step"), "2")

    def test_a_thaw_waits_for_what_limits_leave(self):
        program = self.swapped()
        self.gpuctl("set", "/", "memory-max=96M")
        other = self.holding("beside")
        self.gpuctl("thaw", "ice")
        self.assertIn("wait for room", self.wait_for_event("not-restored")["text"])
        self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        self.assertEqual(other.ask("free"), str(SUCCESS))
        self.assertEqual(program.ask("step", HELD_MIB), "2")
        self.wait_for_memory("ice/below", program, HELD_MIB, 0)

    def test_what_waits_for_room_waits_for_it_under_the_next_daemon_too(self):
        program = self.swapped()
        self.gpuctl("set", "/", "memory-max=96M")
        other = self.holding("beside")
        self.gpuctl("thaw", "ice")
        self.wait_for_event("not-restored")
        self.daemon.kill()
        self.start_daemon()
        self.assertIn("and wait for room", self.wait_for_event("not-restored")["text"])
        self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        self.assertEqual(other.ask("free"), str(SUCCESS))
        self.assertEqual(program.ask("step", HELD_MIB), "2")
        self.wait_for_memory("ice/below", program, HELD_MIB, 0)

    def test_a_swapped_program_can_be_ended(self):
        program = self.swapped()
        self.gpuctl("kill", program.pid)
        self.assertEqual(program.process.wait(instance.PATIENCE_S), -signal.SIGTERM)
        self.gpuctl("thaw", "ice")
        again = self.swapped()
        os.kill(again.pid, signal.SIGKILL)
        instance.wait_until(lambda: not self.clients("ice/below"), "it to be gone")

    def ends_itself(self):
        """A swapped program that begins to exit, with an exit handler that calls the driver: its library registers one
        of its own at the first launch, so that runs before."""
        program = self.program("ice/below")
        self.assertEqual(program.ask("allocate", HELD_MIB), str(SUCCESS))
        self.assertEqual(program.ask("free-at-exit"), "0")
        self.assertEqual(program.ask("step", HELD_MIB), "1")
        self.gpuctl("freeze", "--swap", "ice")
        self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        return program

    def test_a_swapped_program_can_end_itself(self):
        program = self.ends_itself()
        program.process.stdin.close()
        self.assertEqual(program.process.wait(instance.PATIENCE_S), 0)

    def test_a_program_that_ends_itself_waits_for_room(self):
        program = self.ends_itself()
        other = self.holding("beside")
        program.process.stdin.close()
        self.assertIn("no room", self.wait_for_event("not-restored")["text"])
        self.assertIsNone(program.process.poll())
        self.assertEqual(other.ask("free"), str(SUCCESS))
        self.assertEqual(program.process.wait(instance.PATIENCE_S), 0)

    def test_the_next_daemon_brings_it_back(self):
        program = self.swapped()
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            self.daemon.process.send_signal(signal_number)
            self.daemon.process.wait(instance.PATIENCE_S)
            self.start_daemon()
            self.wait_for_memory("ice/below", program, 0, HELD_MIB)
        self.wait_for_event("swapped")
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.ask("step", HELD_MIB), "2")

    def test_what_waits_in_the_driver_holds_up_neither_thaw_nor_the_next_daemon(self):
        """The library manages a context at its first launch, with a lock held that its other threads take."""
        program = self.program("ice")
        self.assertEqual(program.ask("allocate", HELD_MIB), str(SUCCESS))
        self.gpuctl("freeze", "--swap", "ice")
        self.wait_for_memory("ice", program, 0, HELD_MIB)
        program.tell("step", HELD_MIB)
        self.daemon.kill()
        self.start_daemon()
        self.wait_for_memory("ice", program, 0, HELD_MIB)
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.answer("step"), "1")

    def test_what_is_brought_back_by_hand_stays_on_the_gpu(self):
        program = self.swapped()
        self.daemon.kill()
        hand = """
call("cuInit", 0)
call("cuCheckpointProcessRestore", {pid}, None)
call("cuCheckpointProcessUnlock", {pid}, None)
print("ready", flush=True)
"""
        env = {**self.env_of_others(), "LD_LIBRARY_PATH": str(instance.SOFTGPU)}
        done = instance.Conversation(self, [sys.executable, "-c", CALLS + hand.format(pid=program.pid)], env)
        self.assertEqual(done.answer("its start"), "ready")
        self.start_daemon()
        self.wait_for_memory("ice/below", program, HELD_MIB, 0)
        self.assertIn("by hand", self.client("ice/below", program)["swap_now"])
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.ask("step", HELD_MIB), "2")

    def test_who_has_work_that_waits_is_swapped_when_that_is_over(self):
        shell = SliceShell(self, (instance.GPUCTL, "run", "--slice", "ice"))
        shell.do("init")
        shell.do("launch", 0, *LONG)
        instance.wait_until(lambda: (self.usage("ice", shell.pid) or {}).get("holding"), "its kernel to run")
        self.gpuctl("freeze", "--swap", "ice")
        self.assertIn("work of it waits", self.wait_for_event("not-swapped")["text"])
        self.assertNotEqual(self.client("ice", shell)["state"], "swapped")
        self.gpuctl("thaw", "ice")
        shell.finish(0)
        self.gpuctl("freeze", "--swap", "ice")
        instance.wait_until(lambda: self.client("ice", shell)["state"] == "swapped", "it to be swapped")
        self.gpuctl("thaw", "ice")
        shell.finish(0)

    def test_it_stays_frozen_where_the_driver_cannot(self):
        without = self.holding("ice", SOFTGPU_CHECKPOINTS="0")
        self.gpuctl("freeze", "--swap", "ice")
        told = self.wait_for_event("not-swapped")
        self.assertEqual(told["text"], "its memory stays on the GPU: the driver refuses it (error 801)")
        self.assertIn("the driver refuses it (error 801)", self.gpuctl("explain", without.pid).stdout)
        self.wait_for_memory("ice", without, HELD_MIB, 0)
        self.gpuctl("thaw", "ice")
        self.assertEqual(without.ask("step", HELD_MIB), "2")

    def test_under_mps_it_is_not_tried(self):
        pipes = self.scratch / "mps"
        pipes.mkdir()
        (pipes / "nvidia-cuda-mps-control.pid").write_text(str(os.getpid()))
        program = self.holding("ice", CUDA_MPS_PIPE_DIRECTORY=str(pipes))
        self.gpuctl("freeze", "--swap", "ice")
        self.assertIn("MPS", self.wait_for_event("not-swapped")["text"])
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.ask("step", HELD_MIB), "2")

    def assert_managed_memory_is_not_tried(self, program):
        self.assertEqual(program.ask("allocate", 1), str(SUCCESS))
        self.gpuctl("freeze", "--swap", "ice")
        self.assertIn("managed memory", self.wait_for_event("not-swapped")["text"])
        self.gpuctl("thaw", "ice")
        self.assertEqual(program.ask("step", 1), "1")

    def test_managed_memory_is_not_tried(self):
        program = self.program("ice")
        self.assertEqual(program.ask("managed"), str(SUCCESS))
        self.assert_managed_memory_is_not_tried(program)

    def test_managed_variables_are_not_tried(self):
        self.assert_managed_memory_is_not_tried(self.program("ice", MANAGED))

    def test_managed_pools_are_not_tried(self):
        program = self.program("ice")
        program.ask("managed-pool")  # the software GPU has none, and refuses
        self.assert_managed_memory_is_not_tried(program)


if __name__ == "__main__":
    instance.main()
