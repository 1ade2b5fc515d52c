"""Tests of what kernels take of an SM."""

import dataclasses
import unittest

from bench.steps.occupancy import SMS, Kernel, declared_shared, fill_rows, in_use, kernels_of, main_kernels, rows

SM = SMS["90"]
LAVA = Kernel("lavaMD", "lavaMD", 40, 50, 4, 1000, 100, 7296, 10.0)
PTX = """
.extern .shared .align 16 .b8 partial[];
.shared .align 4 .u32 total;
.visible .entry one(
	.param .u64 one_param_0
)
{
	.shared .align 4 .b8 tile[1024];
	.shared .align 8 .f64 sums[2];
	st.shared.f32 	[tile+4], %f1;
	st.shared.f64 	[sums], %fd1;
	st.shared.u32 	[partial], %r1;
}
.visible .entry other(
)
{
	st.shared.u32 	[total], %r1;
}
.visible .entry none(
)
{
	ret;
}
"""


class OccupancyTest(unittest.TestCase):
    def test_adds_up_the_shared_memory_that_a_kernel_uses(self):
        self.assertEqual(declared_shared(PTX), {"one": 1040, "other": 4, "none": 0})

    def test_gives_out_registers_by_warp(self):
        # 50 registers of 32 threads are 1600, given out as 1792; 100 threads are four warps.
        registers, threads, shared = in_use(LAVA, SM)
        self.assertEqual(registers, 16 * 1792 / 65536)
        self.assertEqual(threads, 16 * 32 / 2048)
        self.assertEqual(shared, 4 * 7296 / (228 * 1024))
        self.assertIsNone(in_use(dataclasses.replace(LAVA, shared=None), SM)[2])

    def test_a_full_sm(self):
        self.assertEqual(in_use(Kernel("a", "a", 32, 32, 8, 1, 256, 0, 1.0), SM), (1, 1, 0))

    def test_joins_what_the_daemon_says(self):
        entry = {"name": "a", "form": "persistent", "registers_original": 20, "registers": 30, "per_sm": 8}
        launch = {"kernel": "a", "blocks": 10, "threads": 64, "shared_bytes": 4, "ran_us": 1.0}
        others = [{**entry, "name": "unseen"}, {**entry, "name": "b", "form": "opaque"}]
        launches = [launch, {**launch, "blocks": 20}, {**launch, "kernel": ""}, {**launch, "kernel": "b"}]
        self.assertEqual(
            kernels_of("k", [entry, *others], launches, {"a": 100}),
            [Kernel("k", "a", 20, 30, 8, 20, 64, 104, 2.0)],
        )
        self.assertIsNone(kernels_of("k", [entry], launches, {})[0].shared)

    def test_the_kernel_that_ran_longest_stands_for_its_benchmark(self):
        short = dataclasses.replace(LAVA, name="short", ran_us=1.0)
        self.assertEqual(main_kernels([LAVA, short]), {"lavaMD": LAVA})

    def test_rows_of_sim(self):
        other = dataclasses.replace(LAVA, benchmark="sort", name="sortMove", registers=60, shared=None)
        said = list(rows([LAVA, other], SM))
        self.assertEqual(said[0][2], "40 -> 50 (+25 %); 44 %, 25 %, 12 % (4 workers of 100 threads)")
        self.assertEqual(said[1][2], "40 -> 60 (+50 %); 50 %, 25 %, not shown (4 workers of 100 threads)")
        self.assertEqual([row[2] for row in said[2:4]], ["+25 %; +25 % (lavaMD)", "+38 %; +50 % (sort)"])
        self.assertEqual(said[4][2], "lavaMD 44 %, 25 %, 12 %")

    def test_shares_of_an_unknown_sm_are_not_guessed(self):
        said = list(rows([LAVA], None))
        self.assertEqual(said[0][2], "40 -> 50 (+25 %) (4 workers of 100 threads)")
        self.assertEqual(len(said), 3)

    def test_sms_that_a_kernel_could_fill(self):
        ((figure, _, measured),) = fill_rows({1024: LAVA})
        self.assertIn("1024 x 1024", figure)
        self.assertEqual(measured, "250 (1000 blocks, 4 on an SM)")


if __name__ == "__main__":
    unittest.main()
