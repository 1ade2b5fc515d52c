"""gpuslice-nvcc is nvcc, but for what it adds; and what it makes runs in a slice by itself."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from tests.system.harness import instance, pages

ROOT = pathlib.Path(__file__).resolve().parents[3]
WRAPPER = instance.BUILD / "src/gpuslice-nvcc/gpuslice-nvcc"
NVCC = os.environ.get("GPUSLICE_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
SOURCE = """
__global__ void twice(unsigned* numbers) { numbers[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
int main() { return 0; }
"""
WITHOUT_PTX = ("-gencode", "arch=compute_80,code=sm_80")


@unittest.skipUnless(pathlib.Path(NVCC).exists(), "no nvcc")
class Compiler(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.source = self.scratch / "twice.cu"
        self.source.write_text(SOURCE)
        self.env["GPUSLICE_NVCC"] = NVCC

    def run_in_scratch(self, program, *arguments, env=None):
        return subprocess.run(
            [str(program), *map(str, arguments)],
            cwd=self.scratch,
            env=env or self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def make(self, program, name, *arguments):
        """What is made of the source, in bytes."""
        done = self.run_in_scratch(program, *arguments, "-o", name, "twice.cu")
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.scratch / name).read_bytes()

    def modules(self, path):
        self.gpuctl("rewrite", path)
        return self.gpuctl_json("rewrite", path)["modules"]

    def test_ptx_is_kept_where_nvcc_keeps_none(self):
        for mode, name in (
            (["-c"], "twice.o"),
            (["-fatbin"], "twice.fatbin"),
            (["-cudart", "shared"], "twice"),
            (["-shared", "-Xcompiler", "-fPIC"], "twice.so"),
        ):
            with self.subTest(mode):
                self.make(NVCC, name, *mode, *WITHOUT_PTX)
                self.assertEqual(self.modules(self.scratch / name), [])
                self.make(WRAPPER, name, *mode, *WITHOUT_PTX)
                modules = self.modules(self.scratch / name)
                self.assertEqual([module["architecture"] for module in modules], ["sm_80"])
                self.assertEqual(modules[0]["kernels"][0]["form"], "persistent")

    def test_architectures_known_to_nvcc_alone(self):
        self.make(WRAPPER, "twice.o", "-c", "-arch=all-major")
        architectures = [module["architecture"] for module in self.modules(self.scratch / "twice.o")]
        lowest = self.run_in_scratch(NVCC, "--list-gpu-arch").stdout.split()[0].replace("compute_", "sm_")
        self.assertEqual(len(architectures), 2)  # and the highest, which nvcc keeps
        self.assertIn(lowest, architectures)

    def test_outputs_of_one_form_are_those_of_nvcc(self):
        for mode in (["-ptx", "-arch=compute_80"], ["-cubin", "-arch=sm_80"], ["-E"], ["-MM"]):
            with self.subTest(mode):
                self.assertEqual(
                    self.make(WRAPPER, "ours", *mode), self.make(NVCC, "theirs", *mode).replace(b"theirs", b"ours")
                )

    def test_questions_and_failures_are_those_of_nvcc(self):
        for arguments in (["--version"], ["--list-gpu-code"], [], ["-c", "none.cu"], ["--no-such-option", "twice.cu"]):
            with self.subTest(arguments):
                ours, theirs = (self.run_in_scratch(program, *arguments) for program in (WRAPPER, NVCC))
                self.assertEqual(
                    (ours.returncode, ours.stdout, ours.stderr), (theirs.returncode, theirs.stdout, theirs.stderr)
                )

    def test_dry_run_makes_nothing(self):
        done = self.run_in_scratch(WRAPPER, "--dryrun", *WITHOUT_PTX, "-o", "twice", "twice.cu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kind=ptx,sm=80", done.stderr)
        self.assertIn("libgpuslice.so", done.stderr)
        self.assertFalse((self.scratch / "twice").exists())

    def test_no_nvcc(self):
        done = self.run_in_scratch(WRAPPER, "-c", "twice.cu", env={**self.env, "GPUSLICE_NVCC": "/nonexistent/nvcc"})
        self.assertEqual(
            (done.returncode, done.stderr),
            (127, "gpuslice-nvcc: cannot execute '/nonexistent/nvcc': No such file or directory\n"),
        )


class Linked(instance.SystemTest):
    """Of reduction_linked, made with options that keep no PTX, nothing is known to gpuctl run."""

    warp_instruction_ns = 2000

    def test_runs_in_a_slice_by_itself(self):
        self.start_daemon("--evict-storm", 10_000)
        self.gpuctl("create-slice", "s")
        self.assertNotIn("LD_PRELOAD", self.env)
        program = self.start(
            instance.CUDA_PROGRAMS / "reduction_linked", 1_000_000, env={**self.env, "GPUCTL_SLICE": "s"}
        )
        instance.wait_until(lambda: self.evictions_of("s", program) >= 10, "10 evictions")
        kernels = self.kernels_of(program)
        self.assertEqual([kernel["form"] for kernel in kernels], ["persistent"] * 2, kernels)
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertTrue(re.fullmatch(r"reduction: \d+ rounds, 0 wrong, .*\n", program.out()), program.out())

    @unittest.skipUnless(pathlib.Path(NVCC).exists(), "no nvcc")
    def test_the_commands_of_the_manual(self):
        """The software GPU serves the shared runtime alone."""
        self.start_daemon()
        self.gpuctl("create-slice", "batch")
        for name in ("vector_add.cu", "program.h"):
            shutil.copy(ROOT / "tests/cuda" / name, self.scratch)
        (self.scratch / "vector_add.cu").rename(self.scratch / "train.cu")
        (make, run) = [command for _, command in pages.run_by("gpuslice_nvcc")]
        script = f"{make} -cudart shared && {run} 3"
        program = self.start(
            *("bash", "-c", f"cd {self.scratch} && {script}"),
            env={**self.env, "GPUSLICE_NVCC": NVCC, "PATH": f"{WRAPPER.parent}:{os.environ['PATH']}"},
        )
        self.assertEqual(program.wait(), 0, program.err())
        self.ended("batch", 1)

    def test_is_an_ordinary_program_elsewhere(self):
        program = self.start(instance.CUDA_PROGRAMS / "reduction_linked", 3)
        self.assertEqual(program.wait(), 0, program.err())


if __name__ == "__main__":
    instance.main()
