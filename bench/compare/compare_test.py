"""Tests of the way from two files to the figures that are worse."""

import json
import pathlib
import tempfile
import unittest

from bench.compare.__main__ import report
from bench.compare.figures import Figure, cut, of_rows, of_table, read, value_of
from bench.compare.judge import worse


def row(figure, target, measured):
    return f"{figure:<86} {target:<13} {measured}"


def figure(*values, lower=True):
    return Figure(lower=lower, values=list(values))


class FiguresTest(unittest.TestCase):
    def test_a_row_of_the_table_is_cut_into_its_columns(self):
        short = ("evict, 10 us block-tasks", "p50 <= 30 us", "p50 29.0, p90 39.5, max 228.7 us")
        long = (
            "Figure 10: ANTT, better than plain MPS, mean of the pairs; if preemption cost nothing; how many",
            ">= 8",
            "7.0",
        )
        for columns in (short, long):
            self.assertEqual(cut(row(*columns)), columns)

    def test_rows_belong_to_their_step(self):
        text = "\n".join(
            ["a GPU", "-- suite: words", row("a", "<= 1", "0.5"), "-- evict: words", row("b", "<= 2", "1")]
        )
        self.assertEqual(list(of_table(text)), [("suite", "a", "<= 1", "0.5"), ("evict", "b", "<= 2", "1")])

    def test_numbers_of_rows(self):
        cases = {
            ("<= 1.05", "1.068 (reduction)"): (True, 1.068),
            (">= 10", "11.3; 28"): (False, 11.3),
            ("p50 <= 30 us", "p50 29.0, p90 39.5, max 228.7 us"): (True, 29),
            ("<= 40 us", "77 us"): (True, 77),
            ("<= 5.4 %", "-56.2 %"): (True, -56.2),
            ("28", "27"): (True, 1),
            ("0 errors", "3 errors, 0 warnings; 1 of 1 kernels persistent"): (True, 3),
            ("all right", "2 of 5 wrong"): (True, 2),
        }
        for (target, measured), (lower, value) in cases.items():
            with self.subTest(target=target, measured=measured):
                found, numbers = value_of(target, measured)
                self.assertEqual((found.lower, numbers[0]), (lower, value))

    def test_what_may_be_another_number_is_not_read(self):
        for target, measured in (
            ("<= 10 %", "2.04, 1.88; +8.2 %"),
            ("<= 10", "2.04, 1.88"),
            ("", "5"),
            ("2/3", "0.65"),
        ):
            with self.subTest(target=target, measured=measured):
                self.assertIsNone(value_of(target, measured))

    def test_a_range_is_a_spread(self):
        found, unread = of_rows([("s", "t", "<= 1.02", "1.013 (1.011 to 1.038); results the same")])
        self.assertEqual((found["s: t"].value, round(found["s: t"].spread, 3), unread), (1.013, 0.027, []))

    def test_rows_that_repeat_are_one_figure(self):
        rows = [("s", f"k, {us} us: ratio", "<= 1", measured) for us, measured in ((181, "1.00"), (183, "1.03"))]
        found, _ = of_rows(rows)
        self.assertEqual((list(found), found["s: k: ratio"].values), (["s: k: ratio"], [1.0, 1.03]))
        self.assertAlmostEqual(found["s: k: ratio"].spread, 0.03)

    def test_counts_are_no_part_of_a_name(self):
        (one, _), (other, _) = (
            of_rows(
                [("storms", f"bfs: {launches} launches, 9 evictions, mean 1 max 2 us", "all right", "0 of 1 wrong")]
            )
            for launches in (100, 200)
        )
        self.assertEqual(one.keys(), other.keys())

    def test_two_figures_of_one_row(self):
        found, unread = of_rows([("s", "share; lost", "2/3; <= 10 %", "0.66; 6.3 %")])
        self.assertEqual(
            ({name: at.value for name, at in found.items()}, unread), ({"s: share; lost [2]": 6.3}, ["s: share; lost"])
        )


class JudgeTest(unittest.TestCase):
    def names(self, before, after, once=5):
        return [change.name for change in worse({"it": before}, {"it": after}, once)]

    def test_worse_is_by_more_than_the_spread(self):
        self.assertEqual(self.names(figure(1.0, 1.1), figure(1.14)), [])
        self.assertEqual(self.names(figure(1.0, 1.1), figure(1.16)), ["it"])
        self.assertEqual(self.names(figure(1.05), figure(1.1, 1.3)), [])  # the later one's spread counts too

    def test_more_may_be_better(self):
        self.assertEqual(self.names(figure(10, 11, lower=False), figure(9, lower=False)), ["it"])
        self.assertEqual(self.names(figure(10, 11, lower=False), figure(13, lower=False)), [])

    def test_what_was_measured_once_may_lose_so_many_per_cent(self):
        self.assertEqual(self.names(figure(100), figure(104)), [])
        self.assertEqual(self.names(figure(100), figure(106)), ["it"])
        self.assertEqual(self.names(figure(100), figure(104), once=3), ["it"])

    def test_one_more_mistake_is_worse(self):
        before, after = Figure(lower=True, exact=True, values=[0]), Figure(lower=True, exact=True, values=[1])
        self.assertEqual(self.names(before, after), ["it"])
        self.assertEqual(self.names(after, before), [])

    def test_what_only_one_has_is_not_compared(self):
        self.assertEqual(worse({"a": figure(1)}, {"b": figure(9)}, 5), [])


class ReportTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def corun(self, name, p99, stock_p99):
        def point(median):
            at = {"median": median, "least": median - 5, "greatest": median + 5, "rounds": 3}
            return {"p50_us": at, "p99_us": at, "throughput": None}

        return self.file(
            name,
            json.dumps(
                {
                    "configurations": {"mps": {"kind": "stock"}, "ours-priority": {"kind": "ours"}},
                    "cells": [
                        {
                            "ls": "short",
                            "batch": "long",
                            "alone": {"p50_us": None, "p99_us": None, "throughput": None},
                            "points": {"mps": point(stock_p99), "ours-priority": point(p99)},
                        }
                    ],
                }
            ),
        )

    def test_ours_and_stock_are_told_apart(self):
        lines, failed = report(self.corun("a.json", 100, 200), self.corun("b.json", 120, 230), 5)
        self.assertTrue(failed)
        self.assertEqual(
            [line.rpartition(": ")[0] for line in lines[:4]],
            [
                "worse: short x long, ours-priority: p50_us",
                "worse: short x long, ours-priority: p99_us",
                "worse, but not of gpuctl: short x long, mps: p50_us",
                "worse, but not of gpuctl: short x long, mps: p99_us",
            ],
        )
        self.assertFalse(report(self.corun("a.json", 100, 200), self.corun("b.json", 108, 230), 5)[1])

    def test_a_table_compares_with_raw_lines(self):
        table = self.file("table.txt", "-- suite: words\n" + row("k, 9 us: ratio", "<= 1", "1.0") + "\n")
        raw = self.file("raw.jsonl", json.dumps({"step": "suite", "row": ["k, 8 us: ratio", "<= 1", "1.2"]}) + "\n")
        lines, failed = report(table, raw, 5)
        self.assertEqual((lines[0].startswith("worse: suite: k: ratio: 1 -> 1.2 "), failed), (True, True))

    def test_nothing_in_common_is_no_success(self):
        lines, failed = report(self.file("a.txt", ""), self.file("b.txt", ""), 5)
        self.assertEqual((lines[-1], failed), ("nothing was compared", True))

    def test_a_broken_file_is_named(self):
        for name, text in (("a.json", "{"), ("b.json", "[]"), ("c.jsonl", "{}\n{")):
            path = self.file(name, text)
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, path):
                read(path)


if __name__ == "__main__":
    unittest.main()
