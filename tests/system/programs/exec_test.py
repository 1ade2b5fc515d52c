"""A program becomes another one (exec) while its kernels run. What it left on the GPU may then have all SMs, since
nobody asks for more any longer, even though the process lives on and a child has its descriptors. Under MPS such work
would otherwise keep every other program waiting."""

import sys

from tests.system.harness import instance

# Launches a long kernel, forks a child that sees the stub page of its parent (and has its connection too), and becomes
# `sleep`. The child says when the grant of the first device is no longer limited.
PROGRAM = r"""
import ctypes, os, sys, time
PTX = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry slow()
{
  nanosleep.u32 900000;
  ret;
}
'''
ALL_SMS, CAPSM = 0x00FFFFFF, 64  # ipc::kUnlimited; where the stub page has grant[0].polled.capsm
cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code != 0: raise SystemExit(f"{name}: {code}")
def made(name, *arguments):
    result = P()
    call(name, ctypes.byref(result), *arguments)
    return result
call("cuInit", 0)
call("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))
slow = made("cuModuleGetFunction", made("cuModuleLoadData", PTX.encode()), b"slow")
for _ in range(3): call("cuLaunchKernel", slow, 20000, 1, 1, 32, 1, 1, 0, None, None, None)
page = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "memfd:gpuctl-stub" in line)
def granted(): return ctypes.c_uint32.from_address(page + CAPSM).value
before = granted()
if os.fork() == 0:
    while granted() != ALL_SMS: time.sleep(0.001)
    print(before, "then all", flush=True)
    os._exit(0)
os.execv("/bin/sleep", ["sleep", "600"])
"""


class Exec(instance.SystemTest):
    def test_what_is_left_behind_gets_all_sms(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2)
        program = self.start_in("few", sys.executable, "-c", PROGRAM)
        instance.wait_until(lambda: program.out() or program.process.poll() is not None, "the grant to be opened")
        self.assertEqual(program.out(), "2 then all\n", program.err())
        self.assertIsNone(program.process.poll(), "the process lives on as another program")
        self.assertEqual(self.clients("few"), [])


if __name__ == "__main__":
    instance.main()
