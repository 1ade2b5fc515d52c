"""Programs built by nvcc with the shared CUDA runtime run unmodified under gpuctl run on the software GPU; one with the
static runtime is refused in one clear line."""

import re

from tests.system.harness import instance

PROGRAMS = ("vector_add", "matrix_mul", "reduction")


class CudaRuntime(instance.SystemTest):
    warp_instruction_ns = 2000

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def run_program(self, slice_path, name, rounds):
        path = instance.CUDA_PROGRAMS / f"{name}_shared"
        program = self.start(path, rounds) if slice_path is None else self.start_in(slice_path, path, rounds)
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        line = re.fullmatch(r"(\w+): (\d+) rounds, 0 wrong, [\d.]+ us a round, hash (\w+)\n", program.out())
        self.assertIsNotNone(line, program.out())
        self.assertEqual(line.group(2), str(rounds))
        return line.group(3)

    def test_shared_runtime(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.assertEqual(self.run_program(None, name, 10), self.run_program("s", name, 10))

    def test_their_kernels_are_rewritten(self):
        program = self.start_in("s", instance.CUDA_PROGRAMS / "matrix_mul_shared", 100000)
        kernels = self.kernels_of(program)
        self.assertEqual([kernel["form"] for kernel in kernels], ["persistent"], kernels)

    def test_static_runtime_is_refused(self):
        program = self.start_in("s", instance.CUDA_PROGRAMS / "vector_add_static", 1, env=self.env_of_others())
        self.assertNotEqual(program.wait(), 0)
        lines = [line for line in program.err().splitlines() if "-cudart shared" in line]
        self.assertEqual(len(lines), 1, program.err())


if __name__ == "__main__":
    instance.main()
