"""Front ends that compile to a cubin themselves: their kernels are preemptible, because the PTX was seen on the way.

The software GPU runs no machine code. So a program that loads a cubin runs there only if the rewritten PTX was loaded
instead."""

import os
import pathlib
import re
import subprocess

from tests.system.harness import instance

PROGRAM = instance.CUDA_PROGRAMS / "cubin_program"
LINKED = instance.CUDA_PROGRAMS / "cubin_program_linked"
NVCC = os.environ["GPUSLICE_NVCC"]
PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r5, [%rd4];
  mad.lo.s32 %r6, %r5, 3, %r1;
  st.global.u32 [%rd5], %r6;
  ret;
}
"""


def real_ptxas():
    """The program itself: what stands beside nvcc may be a script that runs it by its own name."""
    steps = subprocess.run(
        [NVCC, "--dryrun", "-x", "cu", "-c", "/dev/null"], capture_output=True, text=True, check=True
    ).stderr
    return pathlib.Path(re.search(r"^#\$ _HERE_=(.*)$", steps, re.MULTILINE)[1]) / "ptxas"


PTXAS = real_ptxas()


class Cubin(instance.SystemTest):
    warp_instruction_ns = 2000

    def setUp(self):
        super().setUp()
        if not PROGRAM.exists():
            self.skipTest("the CUDA toolkit has no libnvrtc")
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.cubin = self.scratch / "kernel.cubin"

    def run_program(self, way, *options):
        """A few rounds in the slice, to their end."""
        started = self.start_in("s", PROGRAM, way, self.cubin, 3, "-arch=sm_90", *options)
        started.wait()
        return started

    def assertRuns(self, way, *options):
        ended = self.run_program(way, *options)
        self.assertEqual(ended.process.returncode, 0, ended.err())
        self.assertTrue(re.fullmatch(r"cubin_program: 3 rounds, 0 wrong, .*\n", ended.out()), ended.out())

    def assertIsRefused(self, way, *options):
        ended = self.run_program(way, *options)
        self.assertEqual(ended.process.returncode, 1, ended.out())
        self.assertIn("cuModuleLoadData", ended.err())

    def assertIsPersistent(self, way, program=PROGRAM):
        started = self.start_in("s", program, way, self.cubin, 1_000_000, "-arch=sm_90")
        kernels = self.kernels_of(started)
        self.assertEqual([(kernel["name"], kernel["form"]) for kernel in kernels], [("scale", "persistent")])
        started.process.terminate()
        self.assertEqual(started.wait(), 0, started.err() + started.out())


class Nvrtc(Cubin):
    def test_called_by_the_program(self):
        self.assertIsPersistent("linked", program=LINKED)

    def test_called_by_a_library_that_was_opened_for_itself(self):
        self.assertIsPersistent("plugin")

    def test_looked_up_by_name(self):
        self.assertIsPersistent("opened")

    def test_without_a_slice_nothing_is_noted(self):
        for program, way in ((LINKED, "linked"), (PROGRAM, "plugin"), (PROGRAM, "opened")):
            with self.subTest(way):
                started = self.start(
                    program,
                    way,
                    self.cubin,
                    3,
                    "-arch=sm_90",
                    env={
                        **self.env,
                        "LD_PRELOAD": str(instance.BUILD / "src/libgpuslice/libgpuslice.so"),
                        "GPUCTL_SOCKET": "",
                    },
                )
                self.assertEqual(started.wait(), 1, started.out())
                self.assertIn("cuModuleLoadData", started.err())
        self.assertFalse((self.scratch / "cache/gpuctl").exists())

    def test_the_same_machine_code_is_made(self):
        """What the program gets from NVRTC is what it gets without us."""
        self.assertRuns("plugin")
        seen = self.cubin.read_bytes()
        self.cubin.unlink()
        self.start(PROGRAM, "plugin", self.cubin, 3, "-arch=sm_90").wait()
        self.assertEqual(seen, self.cubin.read_bytes())

    def test_kept_cubins_are_known_to_later_processes(self):
        self.assertRuns("opened")
        self.assertRuns("read")
        self.cubin.write_bytes(self.cubin.read_bytes()[:-1] + b"\1")
        self.assertIsRefused("read")

    def test_register_limit(self):
        self.assertRuns("opened", "--maxrregcount=32")

    def test_options_that_ptx_does_not_tell(self):
        self.assertIsRefused("opened", "-G")

    def test_without_a_cache_within_the_process_only(self):
        self.env["GPUSLICE_CACHE"] = "0"
        self.assertRuns("opened")
        self.assertIsRefused("read")
        self.assertFalse((self.scratch / "cache/gpuctl").exists())


class Ptxas(Cubin):
    def setUp(self):
        super().setUp()
        self.ptx = self.scratch / "kernel.ptx"
        self.ptx.write_text(PTX)

    def assemble(self, *options, ptxas=PTXAS):
        command = (ptxas, *options, "-lineinfo", "-v", "--gpu-name=sm_90a", self.ptx, "-o", self.cubin)
        return self.start_in("s", *command, env=self.env_of_others())

    def test_output_is_known_to_the_program_that_started_it(self):
        started = self.assemble()
        self.assertEqual(started.wait(), 0, started.err())
        self.assertIsPersistent("read")

    def test_ptxas_behaves_as_always(self):
        for options in ((), ("--version",), ("--no-such-option",)):
            with self.subTest(options):
                self.cubin.unlink(missing_ok=True)
                ours = self.assemble(*options)
                ours.wait()
                made = self.cubin.read_bytes() if self.cubin.exists() else None
                self.cubin.unlink(missing_ok=True)
                theirs = subprocess.run(
                    [PTXAS, *options, "-lineinfo", "-v", "--gpu-name=sm_90a", self.ptx, "-o", self.cubin],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertEqual((ours.process.returncode, ours.out()), (theirs.returncode, theirs.stdout))
                times = re.compile(r"Compile time = .*")
                self.assertEqual(times.sub("", ours.err()), times.sub("", theirs.stderr))
                self.assertEqual(made, self.cubin.read_bytes() if self.cubin.exists() else None)

    def test_by_another_name_nothing_is_noted(self):
        other = self.scratch / "assembler"
        other.symlink_to(PTXAS)
        self.assertEqual(self.assemble(ptxas=other).wait(), 0)
        self.assertIsRefused("read")

    def test_options_that_the_driver_cannot_be_given(self):
        self.assertEqual(self.assemble("--fmad=false").wait(), 0)
        self.assertIsRefused("read")


del Cubin

if __name__ == "__main__":
    instance.main()
