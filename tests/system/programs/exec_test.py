"""A program becomes another one (exec) while its kernels run. Workers read memory of their process, which goes then,
and under MPS that would be a fault for every program on the GPU. So exec waits until the work is done, and the work may
have all SMs, since nobody asks for more any longer, even though the process lives on and a child has its descriptors.
Where programs take turns on the GPU the driver ends that work and no other program minds, so exec does not wait.
"""

import sys

from tests.system.harness import driver_calls, instance

# Launches kernels for some 200 ms on the SMs that it may have, forks a child that sees the stub page of its parent, and
# has its connection too, and becomes `sleep`. The child says how many blocks have written their word when the parent is
# another program, and when the grant of the first device is no longer limited.
PROGRAM = (
    driver_calls.CALLS
    + r"""
import mmap, os, sys, time
PTX = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry slow(.param .u64 words, .param .u32 first)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [words];
  ld.param.u32 %r0, [first];
  mov.u32 %r1, %ctaid.x;
  add.u32 %r0, %r0, %r1;
  mul.wide.u32 %rd1, %r0, 4;
  add.u64 %rd0, %rd0, %rd1;
  nanosleep.u32 1000000;
  mov.u32 %r2, 1;
  st.global.u32 [%rd0], %r2;
  ret;
}
'''
BLOCKS, LAUNCHES = 1000, 10
ALL_SMS, CAPSM = 0x00FFFFFF, 64  # ipc::kUnlimited; where the stub page has grant[0].polled.capsm
FLAGS, TAKES_TURNS = 64 + 40, 1 << 24  # where it has grant[0].flags; ipc::kTakesTurns
P = ctypes.c_void_p
call("cuInit", 0)
call("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))
slow = made("cuModuleGetFunction", made("cuModuleLoadData", PTX.encode()), b"slow")
shared = mmap.mmap(-1, 4 * BLOCKS * LAUNCHES)
words = (ctypes.c_uint32 * (BLOCKS * LAUNCHES)).from_buffer(shared)
address = ctypes.c_uint64(ctypes.addressof(words))
call("cuMemHostRegister_v2", P(address.value), ctypes.c_size_t(len(shared)), 3)
for launch in range(LAUNCHES):
    first = ctypes.c_uint32(launch * BLOCKS)
    parameters = (P * 2)(*[ctypes.cast(ctypes.byref(one), P) for one in (address, first)])
    call("cuLaunchKernel", slow, BLOCKS, 1, 1, 32, 1, 1, 0, None, parameters, None)
page = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "memfd:gpuctl-stub" in line)
def granted(): return ctypes.c_uint32.from_address(page + CAPSM).value
before, begun, parent = granted(), sum(words), os.getpid()
if os.fork() == 0:
    while "sleep" not in os.readlink(f"/proc/{parent}/exe"): pass
    print(sum(words) - begun > BLOCKS, sum(words) == BLOCKS * LAUNCHES, flush=True)
    while granted() != ALL_SMS: time.sleep(0.001)
    print(before, "then all", flush=True)
    os._exit(0)
if "turns" in sys.argv: ctypes.c_uint32.from_address(page + FLAGS).value |= TAKES_TURNS
os.execv("/bin/sleep", ["sleep", "600"])
"""
)


class Exec(instance.SystemTest):
    def test_its_work_is_done_and_may_have_all_sms(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2)
        program = self.start_in("few", sys.executable, "-c", PROGRAM)
        instance.wait_until(
            lambda: "all" in program.out() or program.process.poll() is not None, "the grant to be opened"
        )
        self.assertEqual(program.out(), "True True\n2 then all\n", program.err())
        self.assertIsNone(program.process.poll(), "the process lives on as another program")
        self.assertEqual(self.clients("few"), [])

    def test_kernels_in_original_form_are_over_too(self):
        """Of those the plain driver under MPS makes a fault too."""
        opaque = "  bar.arrive 1, 64;\n  ret;\n"  # what a block leaves at a barrier is in the way of another block-task
        self.start_daemon()
        self.gpuctl("create-slice", "free")
        program = self.start_in("free", sys.executable, "-c", PROGRAM.replace("  ret;\n", opaque))
        instance.wait_until(
            lambda: "all" in program.out() or program.process.poll() is not None, "the process to be another program"
        )
        self.assertEqual(program.out().split("\n")[0], "True True", program.err())

    def test_where_programs_take_turns_it_does_not_wait(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2)
        # As where there is no MPS: the software GPU has no such mode.
        program = self.start_in("few", sys.executable, "-c", PROGRAM, "turns")
        instance.wait_until(lambda: program.out().count("\n") == 2, "the grant to be opened")
        self.assertEqual(program.out().splitlines()[0].split()[1], "False", "its work was done when it became another")


if __name__ == "__main__":
    instance.main()
