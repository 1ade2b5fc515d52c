"""Tests of what is said of workers and subgrids."""

import unittest

from bench.papers.slicing import WORKERS, Found, at_latency, kernel_row, rows, way_name


def found(ratio, *latencies_us):
    return Found(200.0, ratio, list(latencies_us))


class SlicingTest(unittest.TestCase):
    def test_compares_at_the_longest_subgrid_that_is_as_prompt(self):
        subgrids = {1000: found(1.1, 900), 250: found(1.2, 28, 32), 62: found(1.5, 10)}
        self.assertEqual(at_latency(found(1.0, 30), subgrids).ratio, 1.2)
        self.assertEqual(at_latency(found(1.0, 2000), subgrids).ratio, 1.1)

    def test_compares_at_the_shortest_subgrid_where_none_is_as_prompt(self):
        self.assertEqual(at_latency(found(1.0, 5), {1000: found(1.1, 900), 62: found(1.5, 10)}).ratio, 1.5)

    def test_compares_nothing_without_latencies(self):
        self.assertIsNone(at_latency(found(1.0), {62: found(1.5, 10)}))
        self.assertIsNone(at_latency(found(1.0, 5), {62: found(1.5)}))

    def test_rows_of_a_figure(self):
        said = {
            figure: measured
            for figure, _, measured in rows(
                "FLEP 17",
                ["a", "b", "missing"],
                {
                    WORKERS: {"a": found(1.01, 20), "b": found(1.03, 40), "other": found(9, 9)},
                    1000: {"a": found(1.02, 1000), "b": found(1.04, 2000)},
                    62: {"a": found(1.2, 15), "b": found(1.4, 100)},
                },
            )
        }
        self.assertEqual(
            list(said.items()),
            [
                (f"FLEP 17, {way}: overhead, mean", measured)
                for way, measured in (
                    ("workers", "+2.0 %, at most +3.0 % (2 kernels); preempted in 30 us in the mean"),
                    ("subgrids of 1000 us", "+3.0 %, at most +4.0 % (2 kernels); preempted in 1500 us in the mean"),
                    ("subgrids of 62 us", "+30.0 %, at most +40.0 % (2 kernels); preempted in 58 us in the mean"),
                    ("subgrids at the workers' latency", "+30.0 %, at most +40.0 % (2 kernels)"),
                )
            ],
        )

    def test_names_ways(self):
        self.assertEqual(
            [way_name(way) for way in (0, 1, 62)], ["workers", "subgrids of one wave", "subgrids of 62 us"]
        )

    def test_a_kernel_that_was_never_preempted(self):
        self.assertEqual(
            kernel_row("md", 62, found(1.5)),
            ("md, subgrids of 62 us, 200 us: GPU time over the original", "", "1.500; none was preempted (n=0)"),
        )
        self.assertEqual(
            kernel_row("md", 0, found(1.5, 2, 4))[1:], ("<= 1.05", "1.500; preempted in 3 us, at most 4 us (n=2)")
        )


if __name__ == "__main__":
    unittest.main()
