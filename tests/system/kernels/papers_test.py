"""The papers' benchmarks launch the kernels that their rows name, and a launch that does its blocks again and again,
rewritten, leaves what one leaves that does them once.
"""

from bench.papers.kernels import BY_EXTENT, EFFISHA, EXTENTS, FLEP, FRS, SMGUARD, entries
from bench.papers.schedulers import Application
from tests.system.harness import instance

REPEATS = 3


class Papers(instance.SystemTest):
    warp_instruction_ns = 10

    def test_what_is_launched_is_what_is_named(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        for kernel in sorted({*FLEP.values(), *FRS.values(), *EFFISHA.values(), *SMGUARD.values()}):
            with self.subTest(kernel):
                self.compare(kernel)

    def compare(self, kernel):
        repeats = 1 if kernel in BY_EXTENT else REPEATS
        one = Application("A", kernel, EXTENTS[kernel][1], repeats)
        self.assertTrue(one.words().startswith(f"A is {kernel} "), one.words())
        words = one.arguments()
        words[words.index("--check") + 1] = "all"
        client = self.start_bench("s", *words, "--count", 1_000_000, "--announce")
        client.wait_started()
        names = {entry["name"] for entry in self.kernels_of(client, *entries(kernel))}
        report = client.stop()
        self.assertEqual(names, set(entries(kernel)))
        self.assertRightResults(report)
        self.assertEqual(report["repeats"], repeats)


if __name__ == "__main__":
    instance.main()
