"""pair-forms measures both forms of a kernel of several steps, and notices one that leaves something else."""

from tests.system.harness import instance

PAIR_FORMS = instance.BUILD / "tests/pair_forms/pair-forms"
INDEX = "and.b32 \t%gpuslice_ctaid_x, %gpuslice_at, %gpuslice_r1;"  # of the next block-task


class PairForms(instance.SystemTest):
    def rewrite(self, kernel):
        """The rewritten PTX of kernels/KERNEL.cu."""
        ptx = self.scratch / f"{kernel}.ptx"
        self.gpuctl("rewrite", instance.BUILD / "kernels" / ptx.name, "-o", ptx)
        return ptx

    def pair(self, kernel, ptx):
        """Exit status, what was printed, and the complaint."""
        program = self.start(PAIR_FORMS, "--size", "trivial", "--pairs", "1", kernel, ptx)
        return program.wait(), program.out(), program.err()

    def test_measures_every_step(self):
        status, printed, complaint = self.pair("sort", self.rewrite("sort"))
        self.assertEqual((status, complaint), (0, ""))
        for step in ("sortCount", "sortStarts", "sortMove"):
            self.assertRegex(printed, rf"{step}: \d+\.\d\d us, rewritten [+-]\d+\.\d\d us")
        self.assertTrue(printed.endswith("both forms leave the same\n"), printed)

    def test_notices_a_difference(self):
        ptx = self.rewrite("reduction")
        text = ptx.read_text()
        self.assertIn(INDEX, text)
        ptx.write_text(text.replace(INDEX, "mov.u32 \t%gpuslice_ctaid_x, 0;"))
        status, printed, _ = self.pair("reduction", ptx)
        self.assertEqual((status, printed.splitlines()[-1]), (3, f"{ptx}: THE OUTPUTS DIFFER"))

    def test_says_what_is_wrong(self):
        ptx = self.scratch / "nothing.ptx"
        ptx.write_text("nothing")
        status, _, complaint = self.pair("reduction", ptx)
        self.assertEqual(status, 1)
        self.assertTrue(complaint.startswith("pair-forms: cuModuleLoadData: "), complaint)
        status, _, complaint = self.pair("reductions", ptx)
        self.assertEqual(status, 2)
        self.assertIn("KERNEL: reductions not in", complaint)


if __name__ == "__main__":
    instance.main()
