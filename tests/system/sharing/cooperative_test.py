"""Cooperative launches, whose blocks wait for each other: as the driver does them, but when the slice has SMs."""

from tests.system.harness import instance

SUCCESS, TOO_LARGE = 0, 720

# Launches, as it is told, a kernel with PTX whose blocks wait for each other, and one whose blocks do not.
PROGRAM = r"""
import ctypes, sys
PTX = b'''
.version 7.0
.target sm_80
.address_size 64
.visible .entry meet(.param .u64 arrived)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [arrived];
  mov.u32 %r0, %nctaid.x;
  atom.global.add.u32 %r1, [%rd0], 1;
again:
  ld.acquire.gpu.global.u32 %r2, [%rd0];
  setp.lt.u32 %p, %r2, %r0;
  @%p bra again;
  ret;
}
.visible .entry each(.param .u64 arrived)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [arrived];
  atom.global.add.u32 %r0, [%rd0], 1;
  ret;
}
'''
cuda = ctypes.CDLL("libcuda.so.1")
context, module, word = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
codes = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
         cuda.cuModuleLoadData(ctypes.byref(module), PTX), cuda.cuMemAlloc_v2(ctypes.byref(word), ctypes.c_uint64(4))]
print(*codes, flush=True)
for line in sys.stdin:
    how, name, blocks = line.split()
    function, arrived = ctypes.c_void_p(), ctypes.c_uint(0)
    cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
    cuda.cuMemsetD32_v2(word, 0, ctypes.c_uint64(1))
    parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(word), ctypes.c_void_p))
    launch = getattr(cuda, "cuLaunch" + how)
    extra = [None] if how == "Kernel" else []
    code = launch(function, int(blocks), 1, 1, 1, 1, 1, 0, None, parameters, *extra)
    done = cuda.cuCtxSynchronize()
    cuda.cuMemcpyDtoH_v2(ctypes.byref(arrived), word, ctypes.c_uint64(4))
    print(code, done, arrived.value, flush=True)
"""


class Cooperative(instance.SystemTest):
    def start_program(self):
        return self.start_script_in("s", PROGRAM, says="0 0 0 0 0")

    def kernels(self, program):
        return {kernel["name"]: kernel for kernel in self.kernels_of(program, "meet", "each")}

    def test_it_is_gated_and_said(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("create-slice", "other")
        program = self.start_program()
        for how in ("CooperativeKernel", "CooperativeKernel_ptsz"):
            self.assertEqual(program.ask(how, "meet", 64), f"{SUCCESS} 0 64")
        self.assertEqual(program.ask("CooperativeKernel", "each", 64), f"{SUCCESS} 0 64")
        too_large = program.ask("CooperativeKernel", "each", 100_000)
        self.assertEqual(too_large, f"{TOO_LARGE} 0 0")
        kernels = self.kernels(program)
        self.assertEqual((kernels["meet"]["form"], kernels["each"]["form"]), ("opaque", "persistent"))
        gate = "starts when its slice has SMs, on any until it ends: all are granted"
        self.assertTrue(kernels["meet"]["reason"].endswith("; " + gate), kernels["meet"])
        self.assertIn(f"launched cooperatively in its original form: {gate}", kernels["each"]["reason"])

        # Everything is kept for another slice: the launch waits, and says that it wants to run.
        self.gpuctl("set", "other", f"reserve={instance.SMS}", "reserve-mode=strict")
        program.process.stdin.write("CooperativeKernel each 64\n")
        program.process.stdin.flush()
        instance.wait_until(lambda: self.clients("s")[0]["state"] == "waiting", "the launch to wait")
        self.assertRightResults(self.start_bench("other", "work", "--blocks", 8, "--count", 20).report())
        self.assertEqual(self.clients("s")[0]["state"], "waiting", "while another program launched and ended")
        self.gpuctl("set", "other", "reserve=0")
        self.assertEqual(program.answer("the launch"), f"{SUCCESS} 0 64")

        # Confined where all its blocks fit together: two SMs hold 64.
        self.gpuctl("set", "s", "max=3")
        instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == 3, "the grant")
        for blocks, said in (
            (64, "on 2 (a green context)"),
            (65, "do not hold all its blocks at once, which may wait for each other"),
        ):
            self.assertEqual(program.ask("CooperativeKernel", "meet", blocks), f"{SUCCESS} 0 {blocks}")
            instance.wait_until(lambda: said in self.kernels(program)["meet"]["reason"], "the reason to change")


if __name__ == "__main__":
    instance.main()
