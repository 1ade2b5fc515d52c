"""memory_max: what the programs of a slice hold together is limited, and each sees how much that leaves."""

import os
import signal
import sys
import time

from tests.system.harness import instance

MIB = 1 << 20
SUCCESS, OUT_OF_MEMORY = 0, 2

# A program that calls the driver as it is told, a line at a time, and answers each with one line.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
u64 = ctypes.c_uint64
context, stream = ctypes.c_void_p(), ctypes.c_void_p(0)
codes = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
print(*codes, flush=True)
def allocate(name, arguments):
    address, size, pitch = u64(), u64(arguments[0]), u64()
    code = {
        "plain": lambda: cuda.cuMemAlloc_v2(ctypes.byref(address), size),
        "managed": lambda: cuda.cuMemAllocManaged(ctypes.byref(address), size, 1),
        "async": lambda: cuda.cuMemAllocAsync(ctypes.byref(address), size, stream),
        "async_ptsz": lambda: cuda.cuMemAllocAsync_ptsz(ctypes.byref(address), size, stream),
        "pitch": lambda: cuda.cuMemAllocPitch_v2(
            ctypes.byref(address), ctypes.byref(pitch), size, u64(arguments[1]), 4),
    }[name]()
    return code, address.value
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int * 2),
                ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]
ON_DEVICE = Properties(type=1, location=(1, 0))
for line in sys.stdin:
    verb, *words = line.split()
    numbers = [int(word) for word in words if word.isdigit()]
    if verb == "allocate":
        print(*allocate(words[0], numbers), flush=True)
    elif verb == "create":
        handle, size = u64(), u64(numbers[0])
        code = cuda.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(ON_DEVICE), u64())
        print(code, handle.value, flush=True)
    elif verb == "map":
        address, handle, size = u64(), u64(numbers[0]), u64(numbers[1])
        codes = [cuda.cuMemAddressReserve(ctypes.byref(address), size, u64(), u64(), u64()),
                 cuda.cuMemMap(address, size, u64(), handle, u64())]
        print(*codes, address.value, flush=True)
    elif verb == "release":
        print(cuda.cuMemRelease(u64(numbers[0])), flush=True)
    elif verb == "unmap":
        print(cuda.cuMemUnmap(u64(numbers[0]), u64(numbers[1])), flush=True)
    elif verb == "free":
        print(cuda.cuMemFree_v2(u64(numbers[0])), flush=True)
    elif verb == "free_async":
        print(cuda.cuMemFreeAsync(u64(numbers[0]), stream), cuda.cuStreamSynchronize(stream), flush=True)
    elif verb == "reset":
        codes = [cuda.cuDevicePrimaryCtxReset_v2(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)]
        print(*codes, cuda.cuCtxSetCurrent(context), flush=True)
    elif verb == "graph":
        if words[0] == "make":
            graph, made = ctypes.c_void_p(), ctypes.c_void_p()
            codes = [cuda.cuStreamCreate(ctypes.byref(stream), 1), cuda.cuStreamBeginCapture_v2(stream, 2)]
            for size in numbers:
                address = u64()
                codes.append(cuda.cuMemAllocAsync(ctypes.byref(address), u64(size), stream))
                if "freed" in words: codes.append(cuda.cuMemFreeAsync(address, stream))
            codes.append(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
            codes.append(cuda.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, u64()))
            print(*codes, address.value, made.value, flush=True)
        elif words[0] == "launch":
            print(cuda.cuGraphLaunch(ctypes.c_void_p(numbers[0]), stream), cuda.cuStreamSynchronize(stream), flush=True)
        elif words[0] == "trim":
            print(cuda.cuDeviceGraphMemTrim(0), flush=True)
        else:
            print(cuda.cuGraphExecDestroy(ctypes.c_void_p(numbers[0])), flush=True)
    elif verb == "pool":
        # of which device, how: its default pool, a new one, or a stream of its context; and how much
        where, how, size = numbers[0], words[1], u64(numbers[1])
        pool, address, its = ctypes.c_void_p(), u64(), ctypes.c_void_p()
        if how == "default":
            codes = [cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), where)]
        elif how == "new":
            properties = (ctypes.c_uint32 * 22)(1, 0, 1, where)
            codes = [cuda.cuMemPoolCreate(ctypes.byref(pool), properties)]
        else:
            codes = [cuda.cuDevicePrimaryCtxRetain(ctypes.byref(its), where), cuda.cuCtxSetCurrent(its),
                     cuda.cuStreamCreate(ctypes.byref(pool), 1), cuda.cuCtxSetCurrent(context)]
        if how == "stream":
            codes.append(cuda.cuMemAllocAsync(ctypes.byref(address), size, pool))
        else:
            codes.append(cuda.cuMemAllocFromPoolAsync(ctypes.byref(address), size, pool, ctypes.c_void_p(0)))
        print(*codes, address.value, flush=True)
    elif verb == "info":
        free, total = u64(), u64()
        print(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), free.value, total.value, flush=True)
"""


class MemoryProgram(instance.Conversation):
    def __init__(self, test, slice_path):
        super().__init__(test, [instance.GPUCTL, "run", "--slice", slice_path, sys.executable, "-c", PROGRAM], test.env)
        test.assertEqual(self.answer("its start"), "0 0 0")

    def numbers(self, *words):
        return [int(word) for word in self.ask(*words).split()]

    def allocate(self, size, how="plain", height=1):
        """The result and the address."""
        return self.numbers("allocate", how, size, height)

    def must_allocate(self, size, how="plain", height=1):
        code, address = self.allocate(size, how, height)
        if code != SUCCESS:
            raise AssertionError(f"{how} of {size}: {code}")
        return address

    def info(self):
        """Free and total bytes as the driver is said to have."""
        code, free, total = self.numbers("info")
        if code != SUCCESS:
            raise AssertionError(f"cuMemGetInfo: {code}")
        return free, total


class MemoryMax(instance.SystemTest):
    def start_limited(self, limit="64M"):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--memory-max", limit)

    def test_two_programs_share_the_limit(self):
        self.start_limited()
        one, two = MemoryProgram(self, "s"), MemoryProgram(self, "s")
        self.assertEqual(one.info(), (64 * MIB, 64 * MIB))
        first = one.must_allocate(40 * MIB)
        self.assertEqual(two.info(), (24 * MIB, 64 * MIB))
        self.assertEqual(two.allocate(25 * MIB)[0], OUT_OF_MEMORY)
        two.must_allocate(24 * MIB)
        self.assertEqual(one.allocate(1)[0], OUT_OF_MEMORY)
        self.assertEqual(one.info(), (0, 64 * MIB))
        self.assertEqual(self.usage("s", one.pid)["memory"], 40 * MIB)
        self.assertEqual(one.numbers("free", first), [SUCCESS])
        self.assertEqual(two.info(), (40 * MIB, 64 * MIB))
        two.must_allocate(40 * MIB)

    def test_every_kind_of_allocation_counts(self):
        self.start_limited()
        program = MemoryProgram(self, "s")
        for how in ("plain", "managed", "async", "async_ptsz"):
            with self.subTest(how):
                address = program.must_allocate(60 * MIB, how)
                self.assertEqual(program.info(), (4 * MIB, 64 * MIB))
                self.assertEqual(program.allocate(5 * MIB, how)[0], OUT_OF_MEMORY)
                freed = program.numbers("free_async" if how.startswith("async") else "free", address)
                self.assertEqual(set(freed), {SUCCESS})
                self.assertEqual(program.info(), (64 * MIB, 64 * MIB))
        address = program.must_allocate(500, "pitch", 1024)  # rows of 512 bytes
        self.assertEqual(program.info(), (64 * MIB - MIB // 2, 64 * MIB))
        self.assertEqual(program.allocate(MIB, "pitch", 64)[0], OUT_OF_MEMORY)
        self.assertEqual(program.numbers("free", address), [SUCCESS])
        self.assertEqual(program.info(), (64 * MIB, 64 * MIB))

    def test_what_is_held_now_and_at_most_is_shown(self):
        self.start_limited()
        self.gpuctl("create-slice", "s/below")
        program = MemoryProgram(self, "s/below")
        address = program.must_allocate(40 * MIB)
        self.assertEqual(program.allocate(25 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(program.numbers("free", address), [SUCCESS])
        program.must_allocate(8 * MIB)
        for path, refusals in (("s", 1), ("s/below", 0), ("/", 0)):
            (on,) = self.call("GetSlice", path=path)["slice"]["on_gpus"]
            self.assertTrue(on["same"], "no amount differs by GPU")
            self.assertEqual((on["memory"], on["memory_peak"]), (8 * MIB, 40 * MIB), path)
            self.assertEqual(on["max_refusals"], refusals, path)
        shown = self.gpuctl("show", "s").stdout
        self.assertRegex(shown, r"\non GPUs +GPU 0: \d+ SMs? granted, memory 8 MiB, at most 40 MiB\n")
        self.assertIn("1 refusal for want of memory, 1 by its own memory max\n", shown)
        program.end()
        instance.wait_until(lambda: not self.clients("s/below"), "the program to leave")
        (on,) = self.call("GetSlice", path="s")["slice"]["on_gpus"]
        self.assertEqual((on["memory"], on["memory_peak"]), (0, 40 * MIB))

    def test_where_the_gpu_is_full_who_asks_is_refused_and_the_neighbour_goes_on(self):
        self.env["SOFTGPU_SHARED_MEMORY_MIB"] = "64"
        self.start_daemon()
        for path in ("one", "two"):
            self.gpuctl("create-slice", path, "--memory-max", "60M")
        one, two = MemoryProgram(self, "one"), MemoryProgram(self, "two")
        address = one.must_allocate(40 * MIB)
        self.assertEqual(two.allocate(40 * MIB)[0], OUT_OF_MEMORY, "both limits allow it, and the GPU has no more")
        two.must_allocate(20 * MIB)
        self.assertEqual(self.call("GetSlice", path="two")["slice"]["memory_refusals"], 0, "the driver's own refusal")
        self.assertEqual(one.numbers("free", address), [SUCCESS])
        one.must_allocate(40 * MIB)
        self.assertEqual(two.allocate(40 * MIB)[0], OUT_OF_MEMORY)
        for path, program in (("one", one), ("two", two)):
            self.assertEqual([client["pid"] for client in self.clients(path)], [program.pid])

    def test_a_gpu_that_others_fill_beside_kept_memory_is_full(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--memory-min", "64M")
        self.gpuctl("create-slice", "batch")
        batch, ls = MemoryProgram(self, "batch"), MemoryProgram(self, "ls")
        ls.must_allocate(64 * MIB)
        total = batch.info()[1]
        self.assertEqual(batch.allocate(total)[0], OUT_OF_MEMORY)
        self.assertEqual(self.call("GetSlice", path="batch")["slice"]["memory_refusals"], 1)
        self.assertEqual(self.call("GetSlice", path="ls")["slice"]["memory_refusals"], 0)
        (told,) = [event for event in self.gpuctl_json("events")["events"] if event["kind"] == "memory"]
        self.assertEqual((told["slice"], told["text"].split("; ")[-1]), ("batch", "the GPU is full"))

    def test_what_is_kept_is_refused_to_others(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--memory-min", "64M")
        self.gpuctl("create-slice", "batch")
        batch, ls = MemoryProgram(self, "batch"), MemoryProgram(self, "ls")
        free, total = batch.info()
        batch.must_allocate(total - 100 * MIB)
        self.assertEqual(batch.allocate(37 * MIB)[0], OUT_OF_MEMORY)
        while batch.allocate(4 * MIB)[0] == SUCCESS:
            pass
        self.assertEqual(batch.info()[0], 0)
        first = ls.must_allocate(40 * MIB)
        ls.must_allocate(24 * MIB)
        self.assertEqual(ls.allocate(1)[0], OUT_OF_MEMORY, "nobody has left anything beyond what is kept")
        self.assertEqual(
            self.call("GetSlice", path="ls")["slice"]["memory_refusals"], 3, "two of others, one of its own"
        )
        # What it frees is kept for it again.
        self.assertEqual(ls.numbers("free", first), [SUCCESS])
        self.assertEqual(batch.allocate(1)[0], OUT_OF_MEMORY)
        self.gpuctl("set", "ls", "memory-min=0")
        batch.must_allocate(40 * MIB)
        self.assertEqual(self.gpuctl("set", "ls", f"memory-min={total + 1}", check=False).returncode, 1)

    def test_allocations_above_memory_high_wait_and_are_granted(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--memory-high", "64M")
        one, two = MemoryProgram(self, "s"), MemoryProgram(self, "s")
        everything = one.info()
        one.must_allocate(40 * MIB)
        self.assertEqual(self.call("GetSlice", path="s")["slice"]["memory_waits"], 0)
        for waits in (1, 2, 3):
            began = time.monotonic()
            two.must_allocate(60 * MIB)
            self.assertGreaterEqual(time.monotonic() - began, 0.1)
            self.assertEqual(self.call("GetSlice", path="s")["slice"]["memory_waits"], waits)
        self.assertEqual(two.info()[1], everything[1], "nothing is limited")
        shown = self.gpuctl("show", "s").stdout
        self.assertIn("memory high   64 MiB of each GPU\n", shown)
        self.assertIn("allocations   3 waits by memory high, 0 refusals for want of memory\n", shown)
        told = [event for event in self.gpuctl_json("events")["events"] if event["kind"] == "memory"]
        self.assertEqual({event["pid"] for event in told}, {two.pid})
        # Without a daemon nobody knows what the others hold.
        self.daemon.process.kill()
        self.daemon.wait()
        one.must_allocate(40 * MIB)

    def test_memory_of_graphs_counts_until_it_is_trimmed(self):
        self.start_limited()
        program = MemoryProgram(self, "s")
        *codes, _, graph = program.numbers("graph", "make", 65 * MIB)
        self.assertEqual(set(codes), {SUCCESS})
        self.assertEqual(program.numbers("graph", "launch", graph), [OUT_OF_MEMORY, SUCCESS])
        self.assertEqual(program.info(), (64 * MIB, 64 * MIB))
        *codes, address, graph = program.numbers("graph", "make", 40 * MIB, 20 * MIB, "freed")
        self.assertEqual(set(codes), {SUCCESS})
        for _ in range(2):  # the second launch takes what the first one had
            self.assertEqual(program.numbers("graph", "launch", graph), [SUCCESS, SUCCESS])
        self.assertEqual(program.info(), (4 * MIB, 64 * MIB))
        self.assertEqual(program.allocate(5 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(program.numbers("graph", "destroy", graph), [SUCCESS])
        self.assertEqual(program.info(), (4 * MIB, 64 * MIB))
        self.assertEqual(program.numbers("graph", "trim"), [SUCCESS])
        self.assertEqual(program.info(), (64 * MIB, 64 * MIB))
        *codes, address, graph = program.numbers("graph", "make", 40 * MIB)  # the program frees it
        self.assertEqual(set(codes), {SUCCESS})
        self.assertEqual(program.numbers("graph", "launch", graph), [SUCCESS, SUCCESS])
        self.assertEqual(program.numbers("graph", "trim"), [SUCCESS])
        self.assertEqual(program.info(), (24 * MIB, 64 * MIB))
        self.assertEqual(program.numbers("free_async", address), [SUCCESS, SUCCESS])
        self.assertEqual(program.numbers("graph", "trim"), [SUCCESS])
        self.assertEqual(program.info(), (64 * MIB, 64 * MIB))

    def test_memory_counts_on_the_device_that_has_it(self):
        self.env["SOFTGPU_DEVICES"] = "2"
        self.start_limited()
        program = MemoryProgram(self, "s")
        for how in ("default", "new", "stream"):
            with self.subTest(how):
                *codes, address = program.numbers("pool", 1, how, 60 * MIB)
                self.assertEqual(set(codes), {SUCCESS})
                self.assertEqual(program.info(), (64 * MIB, 64 * MIB), "the other device")
                *codes, refused, _ = program.numbers("pool", 1, how, 5 * MIB)
                self.assertEqual((set(codes), refused), ({SUCCESS}, OUT_OF_MEMORY))
                self.assertEqual(program.numbers("free_async", address), [SUCCESS, SUCCESS])
        program.must_allocate(64 * MIB)

    def test_physical_memory_counts_until_its_last_use(self):
        """With a handle, or mapped: what is released while it is mapped counts until it is unmapped."""
        self.start_limited()
        program = MemoryProgram(self, "s")
        code, handle = program.numbers("create", 60 * MIB)
        self.assertEqual(code, SUCCESS)
        self.assertEqual(program.info(), (4 * MIB, 64 * MIB))
        self.assertEqual(program.numbers("create", 6 * MIB)[0], OUT_OF_MEMORY)
        *codes, address = program.numbers("map", handle, 60 * MIB)
        self.assertEqual(codes, [SUCCESS, SUCCESS])
        self.assertEqual(program.numbers("release", handle), [SUCCESS])
        self.assertEqual(program.info(), (4 * MIB, 64 * MIB))
        self.assertEqual(program.allocate(6 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(program.numbers("unmap", address, 60 * MIB), [SUCCESS])
        self.assertEqual(program.info(), (64 * MIB, 64 * MIB))
        self.assertEqual(program.numbers("create", 64 * MIB)[0], SUCCESS)

    def test_what_fails_does_not_count(self):
        self.start_limited("100T")
        program = MemoryProgram(self, "s")
        free, total = program.info()
        self.assertLess(total, 100 * MIB * MIB)  # the GPU has less
        self.assertEqual(program.allocate(total + 1)[0], OUT_OF_MEMORY)
        self.assertEqual(program.numbers("free", 4096), [1])
        self.gpuctl("set", "s", f"memory-max={64 * MIB}")
        program.must_allocate(64 * MIB)

    def test_the_limit_changes_under_a_program(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        program = MemoryProgram(self, "s")
        free, total = program.info()
        self.assertGreater(total, 64 * MIB)
        program.must_allocate(40 * MIB)
        self.gpuctl("set", "s", "memory-max=32M")
        self.assertEqual(program.info(), (0, 32 * MIB))
        self.assertEqual(program.allocate(1)[0], OUT_OF_MEMORY)
        self.gpuctl("set", "s", "memory-max=48M")
        self.assertEqual(program.info(), (8 * MIB, 48 * MIB))
        program.must_allocate(8 * MIB)
        self.gpuctl("set", "s", "memory-max=none")
        self.assertEqual(program.info()[1], total)
        program.must_allocate(64 * MIB)

    def test_a_dead_program_and_a_reset_context_hold_nothing(self):
        self.start_limited()
        one, two = MemoryProgram(self, "s"), MemoryProgram(self, "s")
        one.must_allocate(64 * MIB)
        self.assertEqual(two.allocate(MIB)[0], OUT_OF_MEMORY)
        one.process.kill()
        instance.wait_until(lambda: two.info()[0] == 64 * MIB, "the memory of a dead program")
        two.must_allocate(64 * MIB)
        self.assertEqual(two.numbers("reset"), [SUCCESS] * 3)
        self.assertEqual(two.info(), (64 * MIB, 64 * MIB))

    def test_the_limit_outlives_the_daemon(self):
        self.start_limited()
        program = MemoryProgram(self, "s")
        address = program.must_allocate(40 * MIB)
        self.daemon.kill()
        self.assertEqual(program.allocate(25 * MIB)[0], OUT_OF_MEMORY)
        self.assertEqual(program.info(), (24 * MIB, 64 * MIB))
        self.start_daemon()
        instance.wait_until(lambda: self.clients("s"), "the program to come back")
        other = MemoryProgram(self, "s")
        instance.wait_until(lambda: other.info() == (24 * MIB, 64 * MIB), "what it holds to count again")
        self.assertEqual(program.numbers("free", address), [SUCCESS])
        other.must_allocate(64 * MIB)

    def test_programs_that_ask_while_there_is_no_daemon_share_the_limit_too(self):
        self.start_limited()
        programs = [MemoryProgram(self, "s"), MemoryProgram(self, "s")]
        for program in programs:
            program.must_allocate(8 * MIB)
        self.daemon.kill()
        for program in programs:
            program.tell("allocate", "plain", 40 * MIB, 1)
        self.start_daemon()
        codes = [int(program.answer("allocate").split()[0]) for program in programs]
        self.assertEqual(sorted(codes), [SUCCESS, OUT_OF_MEMORY])

    def test_what_was_granted_counts_before_its_program_is_back(self):
        """One that is stopped does not come back, and what it has is kept for it for a while."""
        self.start_limited()
        stopped, other = MemoryProgram(self, "s"), MemoryProgram(self, "s")
        stopped.must_allocate(40 * MIB)
        os.kill(stopped.pid, signal.SIGSTOP)
        self.daemon.kill()
        self.start_daemon()
        code, _ = other.allocate(40 * MIB)
        grace_is_over = "has not come back" in self.daemon.err()
        os.kill(stopped.pid, signal.SIGCONT)
        self.assertTrue(code == OUT_OF_MEMORY or grace_is_over, code)


if __name__ == "__main__":
    instance.main()
