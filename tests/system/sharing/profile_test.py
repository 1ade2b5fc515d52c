"""gpuctl profile measures a program's kernels with several numbers of SMs, and teaches the daemon what it measured."""

import json
import os
import signal
import subprocess
import sys

from tests.system.harness import driver_calls, instance

KIB = 1024
ELEMENTS = 30011  # of vectorAdd's trivial size: three arrays of floats
WIDTHS = (instance.SMS, 2)

# Launches a kernel that cannot be rewritten, since its image is loaded with an option that shapes the code. So the
# driver alone says where its parameters lie.
OPAQUE = (
    driver_calls.CALLS
    + r"""
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u32 value, .param .u64 array)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u32 %r0, [value];
  ld.param.u64 %rd0, [array];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 4;
  add.u64 %rd2, %rd0, %rd1;
  st.global.u32 [%rd2+1024], %r0;
  ret;
}
'''
BYTES, OPTIMIZATION_LEVEL = 100_000, 7
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
context, module, function, memory = POINTER(), POINTER(), POINTER(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
option, value = ctypes.c_int(OPTIMIZATION_LEVEL), POINTER(2)
call("cuModuleLoadDataEx", ctypes.byref(module), PTX, 1, ctypes.byref(option), ctypes.byref(value))
call("cuModuleGetFunction", ctypes.byref(function), module, b"fill")
call("cuMemAlloc_v2", ctypes.byref(memory), SIZE(BYTES))
inside = ctypes.c_uint64(memory.value + 64)
parameters = [ctypes.c_uint32(7), inside]
pointers = (POINTER * 2)(*[ctypes.cast(ctypes.byref(one), POINTER) for one in parameters])
for _ in range(200):
    call("cuLaunchKernel", function, 3, 1, 1, 32, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize")
found = ctypes.c_uint32()
call("cuMemcpyDtoH_v2", ctypes.byref(found), ctypes.c_uint64(inside.value + 1024), SIZE(4))
assert found.value == 7
"""
)


def rounded_up(number):
    return -(-number // KIB) * KIB


class Profile(instance.SystemTest):
    warp_instruction_ns = 500

    def setUp(self):
        super().setUp()
        self.start_daemon(config="")
        self.file = self.scratch / "profile.json"

    def profile(self, *bench, options=(), check=True):
        widths = ",".join(map(str, WIDTHS))
        command = ["profile", "-o", self.file, "--widths", widths, *options, "--", instance.BENCH, "run", *bench]
        return self.gpuctl(*command, check=check)

    def measured(self, name):
        profile = json.loads(self.file.read_text())
        self.assertEqual((profile["version"], profile["sms"]), (1, instance.SMS))
        return next(kernel for kernel in profile["kernels"] if kernel["name"] == name)

    def assertNothingIsLeft(self):
        self.assertEqual([one["path"] for one in self.call("ListSlices")["slices"]], ["/"])

    def known(self, name):
        return [kernel for kernel in self.call("ListKernels")["kernels"] if kernel["name"] == name]

    def test_measures_each_kernel_with_each_number_of_sms(self):
        ran = self.profile("vectorAdd", "--count", 6, options=("--runs", 2))
        kernel = self.measured("vectorAdd")
        self.assertEqual([point["sms"] for point in kernel["curve"]], sorted(WIDTHS))
        self.assertTrue(all(point["block_task_us"] > 0 for point in kernel["curve"]))
        (given,) = kernel["inputs"]
        self.assertEqual((given["threads"], given["input_bytes"]), (256, rounded_up(3 * 4 * ELEMENTS)))
        self.assertGreaterEqual(given["launches"], 12, "two runs with all SMs")
        self.assertGreater(kernel["block_task_us"], 0)
        self.assertIn("vectorAdd", ran.stdout)
        self.assertNothingIsLeft()

    def test_measures_kernels_that_cannot_be_rewritten(self):
        self.gpuctl("profile", "-o", self.file, "--widths", instance.SMS, "--", sys.executable, "-c", OPAQUE)
        (given,) = self.measured("fill")["inputs"]
        self.assertEqual((given["blocks"], given["threads"]), (3, 32))
        self.assertEqual(given["input_bytes"], rounded_up(100_000))

    def test_says_how_far_off_it_is_for_an_input_that_it_has_not_seen(self):
        for number, extent in enumerate((20000, 40000, 60000, 80000)):
            ran = self.profile(
                "vectorAdd", "--count", 3, "--extent", extent, options=("--json", *(["--add"] if number else []))
            )
        (said,) = json.loads(ran.stdout.splitlines()[-1])["kernels"]
        inputs = [rounded_up(3 * 4 * extent) for extent in (20000, 40000, 60000, 80000)]
        self.assertEqual(sorted(one["input_bytes"] for one in said["inputs"]), inputs)
        self.assertGreater(said["error"], 0)

    def test_what_was_measured_is_known_before_the_first_launch(self):
        self.profile("vectorAdd", "--count", 6)
        self.gpuctl("forget-kernels")
        self.assertEqual(self.known("vectorAdd"), [])
        self.gpuctl("profile", "--load", self.file)
        (taught,) = self.known("vectorAdd")
        # The daemon shows no point that is hardly faster than one with fewer SMs.
        self.assertEqual(taught["curve"][0]["sms"], min(WIDTHS))
        self.assertGreater(taught["launches"], 0)
        self.daemon.process.terminate()
        self.daemon.wait()
        self.start_daemon(config="")
        self.assertEqual(self.known("vectorAdd"), [taught], "a restart changed it")
        self.gpuctl("set", "/", "policy=sjf")
        self.start_bench("/", "vectorAdd", "--count", 1, "--warmup", 0).report()
        self.assertGreater(self.known("vectorAdd")[0]["predicted_us"], 0, "the first launch was not predicted")

    def test_a_program_that_fails_leaves_nothing(self):
        ran = self.profile("no such kernel", check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"gpuslice-bench ended with status 2 with 8 SMs; nothing is written\n$")
        self.assertFalse(self.file.exists())
        self.assertNothingIsLeft()

    def test_a_signal_ends_the_program_and_leaves_nothing(self):
        command = [instance.GPUCTL, "profile", "-o", self.file, "--", instance.BENCH, "run", "work", "--seconds", 600]
        profile = subprocess.Popen(
            list(map(str, command)), env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(profile.kill)
        instance.wait_until(lambda: self.call("ListClients")["clients"], "the program to be attached")
        profile.send_signal(signal.SIGTERM)
        self.assertEqual(profile.communicate(timeout=60)[1], "gpuctl: profile: stopped; nothing is written\n")
        self.assertEqual(profile.returncode, 1)
        self.assertFalse(self.file.exists())
        self.assertEqual(self.call("ListClients")["clients"], [])
        self.assertNothingIsLeft()

    def test_a_file_is_refused_whole(self):
        self.profile("vectorAdd", "--count", 2)
        self.gpuctl("forget-kernels")
        profile = json.loads(self.file.read_text())
        profile["kernels"].append({**profile["kernels"][0], "name": "other", "evict_us": -1})
        self.file.write_text(json.dumps(profile))
        refused = self.gpuctl("profile", "--load", self.file, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"{self.file}: field 'kernels[1].evict_us' must be at least 0", refused.stderr)
        self.assertEqual(self.known("vectorAdd"), [], "half of it was taken")
        os.chmod(self.file, 0o666)
        self.assertIn("others may write to it", self.gpuctl("profile", "--load", self.file, check=False).stderr)


if __name__ == "__main__":
    instance.main()
