"""A slice with a quota uses the GPU for so much of each period, with kernels in either form, and what is beside it has
the rest."""

import sys
import time

from tests.system.harness import driver_calls, instance
from tests.system.harness.slice_shell import SliceShell
from tests.system.harness.sms import watch_sms

RUN = (instance.GPUCTL, "run", "--slice")
PART = 0.4
QUOTA = "80ms/200ms"
PERIODS = 10
NEAR = 0.15  # of the quota
ALONE_S = 0.6
# Blocks of 5 ms, for longer than a test takes.
LONG = (160_000 * instance.SLOWER, 50)

# Launches a kernel of some 15 ms on all SMs that cannot be rewritten, again and again.
PROGRAM = (
    driver_calls.CALLS
    + r"""
import sys
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry rests(.param .u32 nanoseconds)
{
  .reg .b32 %r0;
  .reg .b64 %rd0;
  mov.u64 %rd0, %gridid;
  ld.param.u32 %r0, [nanoseconds];
  nanosleep.u32 %r0;
  ret;
}
'''
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(function), module, b"rests")
nanoseconds = ctypes.c_uint32(15_000_000)
pointers = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(nanoseconds), ctypes.c_void_p))
print("ready", flush=True)
while True:
    call("cuLaunchKernel", function, 8, 1, 1, 1024, 1, 1, 0, None, pointers, None)
    call("cuStreamSynchronize", None)
"""
)


class Harness(instance.SystemTest):
    def shell(self, slice_path, *launch):
        shell = SliceShell(self, (*RUN, slice_path))
        shell.do("init")
        shell.do("launch", 0, *launch)
        return shell

    def throttled(self):
        return self.call("GetSlice", path="q")["slice"]["throttled"]

    def wait_throttled(self, more):
        times = self.throttled() + more
        instance.wait_until(lambda: self.throttled() >= times, f"it to be throttled {more} times", interval=0.002)


class TimedQuota(Harness):
    def periods(self):
        """When some periods began and ended: from when the quota is used up to when it is again."""
        self.wait_throttled(2)
        began = time.monotonic_ns()
        self.wait_throttled(PERIODS)
        return began, time.monotonic_ns()

    def assertKept(self, part):
        print(f"{part:.3f} of the GPU", file=sys.stderr)
        self.assertLess(abs(part / PART - 1), NEAR, f"{part:.3f} of the GPU instead of {PART}")

    def start_alone(self, *more):
        """A program that has the GPU for itself for a while, before its slice has a quota: (it, when that was)."""
        self.gpuctl("create-slice", "q", *more)
        shell = self.shell("q", *LONG)
        instance.wait_until(lambda: self.usage("q", shell.pid)["holding"] == instance.SMS, "it to have the GPU")
        began = time.monotonic_ns()
        time.sleep(ALONE_S)
        alone = began, time.monotonic_ns()
        self.gpuctl("set", "q", f"quota={QUOTA}")
        return shell, alone

    def assertBlocksKept(self, shell, alone, then):
        """By the blocks that began: a stream's order is kept by a worker on an SM, which does nothing."""
        starts = [record.start_ns for record in shell.records(0)]
        self.assertLess(len(starts), LONG[0], "the kernel has ended")

        def per_ns(began, ended):
            return sum(began <= start < ended for start in starts) / (ended - began)

        self.assertKept(per_ns(*then) / per_ns(*alone))

    def test_a_kernel_that_is_rewritten_leaves_and_comes_back(self):
        self.start_daemon()
        shell, alone = self.start_alone()
        self.assertBlocksKept(shell, alone, self.periods())
        self.assertRegex(self.gpuctl("show", "q").stdout, rf"\nquota +{QUOTA}; used up [1-9]\d* times, for \d")
        instance.wait_until(lambda: "throttled" in self.gpuctl("events", "q").stdout, "an event that tells it")
        self.assertEqual(self.gpuctl("events", "q").stdout.count(f"its quota of {QUOTA} is used up"), 1)
        self.assertIn("in force on GPU 0: quota", self.gpuctl("explain", shell.pid).stdout)
        self.gpuctl("set", "q", "quota=100ms/1s", "burst=50ms")
        instance.wait_until(lambda: "(throttled)" in self.gpuctl("list").stdout, "list to say why it waits")
        self.assertRegex(self.gpuctl("explain", shell.pid).stdout, r"\nthrottled: quota used up on GPU 0, goes on")
        self.gpuctl("set", "q", "quota=none")
        instance.wait_until(lambda: self.usage("q", shell.pid)["holding"] == instance.SMS, "it to have the GPU")
        shell.do("finish")

    def test_a_kernel_that_cannot_be_stopped_pays_later(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "q", "--quota", QUOTA)
        program = self.start_script_in("q", PROGRAM)
        self.wait_throttled(2)
        watch, began = watch_sms(self, "sums"), time.monotonic()
        self.wait_throttled(PERIODS)
        sums = [line.split() for line in watch.communicate()[0].splitlines()]
        (sm_s,) = (float(sm_s) for pid, _, sm_s in sums if int(pid) == program.pid)
        self.assertKept(sm_s / instance.SMS / (time.monotonic() - began))

    def test_what_is_beside_it_has_the_rest(self):
        self.start_daemon()
        shell, alone = self.start_alone("--priority", 10)
        self.gpuctl("create-slice", "beside")
        beside = self.shell("beside", *LONG)
        self.wait_throttled(1)
        watch, began = watch_sms(self, "sums"), time.monotonic()
        then = self.periods()
        sums = [line.split() for line in watch.communicate()[0].splitlines()]
        passed = time.monotonic() - began
        self.assertBlocksKept(shell, alone, then)
        (sm_s,) = (float(sm_s) for pid, _, sm_s in sums if int(pid) == beside.pid)
        self.assertGreater(sm_s / instance.SMS / passed, (1 - PART) * (1 - NEAR))
        for one in (shell, beside):
            one.do("finish")

    def test_who_takes_turns_has_a_quota_too(self):
        self.start_daemon()
        shell, alone = self.start_alone("--isolation", "isolated")
        self.assertBlocksKept(shell, alone, self.periods())
        shell.do("finish")


class Quota(Harness):
    def test_a_daemon_that_is_stopped_leaves_nobody_throttled(self):
        self.start_daemon()
        self.gpuctl("create-slice", "q", "--quota", "1ms/1s")
        shell = self.shell("q", *LONG)
        self.wait_throttled(1)
        instance.wait_until(lambda: shell.grant().capsm == 0, "it to have no SMs")
        self.daemon.process.terminate()
        self.daemon.process.wait()
        began = len(shell.records(0))
        instance.wait_until(lambda: len(shell.records(0)) > began + 10 * instance.SMS, "it to go on")
        shell.do("finish")


if __name__ == "__main__":
    instance.main()
