"""Each kernel in its persistent form leaves the same memory, bit for bit, as the original does."""

from tests.system.harness import instance

KERNELS = ("vectorAdd", "matrixMul", "reduction", "histogram", "work")


class Identical(instance.SystemTest):
    warp_instruction_ns = 2000

    def test_every_kernel(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            with self.subTest(kernel):
                original = self.start_bench(None, kernel, "--count", 3).report()
                self.assertRightResults(original)
                managed = self.start_bench("s", kernel, "--count", 1000000, "--announce")
                managed.wait_started()
                forms = {k["name"]: (k["form"], k["reason"]) for k in self.kernels_of(managed, kernel)}
                report = managed.stop()
                self.assertRightResults(report)
                self.assertEqual(report["output_hash"], original["output_hash"])
                self.assertEqual(forms[kernel][0], "persistent", forms)


if __name__ == "__main__":
    instance.main()
