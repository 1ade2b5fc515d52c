#!/usr/bin/env python3
"""Tests of the way from runs to points, cells, table and plot."""

import json
import pathlib
import tempfile
import types
import unittest
import xml.etree.ElementTree

from bench.corun import merge, plot, table
from bench.corun.configurations import CONFIGURATIONS
from bench.corun.results import Results, point, spread

NAMES = ("alone", "mps", "mps-stream", "ours-strict", "ours-active")


def workload(name):
    return types.SimpleNamespace(name=name, together=("products", "training") if name == "both" else ())


def ls_report(p50, p99, unserved=0):
    return {"count": 100, "unserved": unserved, "p50_us": p50, "p99_us": p99}


def results(path):
    configurations = {
        name: {"description": name, "kind": CONFIGURATIONS[name].kind, "mode": CONFIGURATIONS[name].mode}
        for name in NAMES
    }
    head = {
        "machine": {"gpu": "a GPU", "cores": 2, "when": "today", "commit": "none"},
        "order": "by turns",
        "options": {"rounds": 3, "seconds": 1, "settle": 0, "quick": False},
        "configurations": configurations,
        "workloads": {"short": {"ls": "short kernels"}, "long": {"batch": "long kernels"}},
    }
    found = Results(path, head)
    ls, batch = workload("short"), workload("long")
    for number in range(3):
        found.add(ls, None, CONFIGURATIONS["alone"], number, [ls_report(50, 60)])
        found.add(None, batch, CONFIGURATIONS["alone"], number, [{"rate": 100.0 + number}])
        found.add(
            ls, batch, CONFIGURATIONS["mps"], number, [ls_report(500, 1000 + number), {"rate": 60.0}, {"rate": 41.0}]
        )
        found.add(ls, batch, CONFIGURATIONS["mps-stream"], number, [ls_report(80, 100), {"rate": 98.0}])
        found.add(ls, batch, CONFIGURATIONS["ours-strict"], number, [ls_report(60, 80), {"rate": 90.0}])
    found.add(ls, batch, CONFIGURATIONS["ours-active"], 0, [ls_report(300, 400, unserved=7), {"rate": 49.0}])
    found.miss(ls, batch, CONFIGURATIONS["ours-active"], [1, 2], "no time left")
    found.save()
    return found


class ResultsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.results = results(pathlib.Path(directory.name) / "corun.json")
        self.data = self.results.data
        (self.cell,) = self.data["cells"]

    def test_spread(self):
        self.assertEqual(spread([3, 1, 2]), {"median": 2, "least": 1, "greatest": 3, "rounds": 3})
        self.assertIsNone(spread([]))

    def test_several_batch_programs_add_up(self):
        at = point([run for run in self.data["runs"] if run["configuration"] == "mps"])
        self.assertEqual(at["throughput"], {"median": 101.0, "least": 101.0, "greatest": 101.0, "rounds": 3})
        self.assertEqual(at["p99_us"]["median"], 1001)

    def test_bursts_are_requests_without_their_waiting_where_all_were_served(self):
        reports = ({**ls_report(60, 90), "service_p99_us": 70}, {**ls_report(60, 95, unserved=1), "service_p99_us": 70})
        runs = [{"ls_report": report, "batch_reports": []} for report in reports]
        self.assertEqual([point([run])["burst_p99_us"]["median"] for run in runs], [70, 95])

    def test_of_different_batch_programs_ratios_count_alike(self):
        ls, both = workload("short"), workload("both")
        self.data["workloads"]["both"] = {"batch": "two of different kinds"}
        for name, rates in (("mps", (50, 2.0)), ("ours-strict", (25, 4.0)), ("ours-active", (50, 0.0))):
            reports = [ls_report(1, 2), *({"rate": rate} for rate in rates)]
            self.results.add(ls, both, CONFIGURATIONS[name], 0, reports)
        self.results.save()
        points = self.data["cells"][1]["points"]
        self.assertAlmostEqual(points["mps"]["throughput"]["median"], 10)
        self.assertAlmostEqual(points["ours-strict"]["throughput"]["median"], 10)
        self.assertEqual(points["ours-active"]["throughput"]["median"], 0)
        self.assertIn("10.00: products 50.00, training 2.00", "\n".join(table.lines(self.data)))

    def test_alone_and_shares(self):
        self.assertEqual(self.cell["alone"]["p99_us"]["median"], 60)
        self.assertEqual(self.cell["alone"]["throughput"]["median"], 101)
        self.assertEqual(self.cell["points"]["mps"]["share"], 1)
        self.assertNotIn("alone", self.cell["points"])

    def test_the_place_of_ours(self):
        self.assertEqual(self.cell["stock_frontier"], ["mps", "mps-stream"])
        strict, active = self.cell["ours"]["ours-strict"], self.cell["ours"]["ours-active"]
        self.assertTrue(strict["on_frontier"])
        self.assertAlmostEqual(strict["distance"], 0.8)
        self.assertEqual((active["on_frontier"], active["distance"]), (False, 2.0))
        self.assertEqual(self.cell["best_of_ours"], "ours-strict")

    def test_has(self):
        self.assertTrue(self.results.has(workload("short"), None, CONFIGURATIONS["alone"], 2))
        self.assertFalse(self.results.has(workload("short"), workload("long"), CONFIGURATIONS["ours-active"], 1))

    def test_table(self):
        lines = list(table.lines(self.data))
        self.assertTrue(any(line.startswith("* mps-stream ") for line in lines), lines)
        self.assertTrue(any(line.startswith("+ ours-strict ") and line.endswith("0.80") for line in lines), lines)
        self.assertTrue(any(line.startswith("  ours-active ") and "(7 unserved)" in line for line in lines), lines)
        self.assertIn("  not run: ours-active, round 2, 3: no time left", lines)
        self.assertTrue(
            lines[-1].startswith("short x long  ours-strict: p99 80.00 us, 90.00/s  mps-stream: "), lines[-1]
        )
        self.assertTrue(lines[-1].endswith("on the frontier, 0.80"), lines[-1])

    def test_plot(self):
        drawing = xml.etree.ElementTree.fromstring("\n".join(plot.svg(self.data)))
        texts = {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}
        self.assertLessEqual(
            {"short x long", "1 mps", "2 mps-stream", "3 ours-strict", "4 ours-active", "1", "2", "3", "4", "alone"},
            texts,
        )

    def test_merged(self):
        fewer = json.loads(json.dumps(self.data))
        fewer["machine"]["when"] = "tomorrow"
        del fewer["cells"][0]["points"]["ours-active"]
        other = json.loads(json.dumps(fewer))
        other["cells"][0]["ls"] = "other"
        other["workloads"]["other"] = {"ls": "other kernels"}
        whole = merge.merged([self.data, fewer, other])
        self.assertEqual(
            [(cell["ls"], cell["machine"]["when"], len(cell["points"])) for cell in whole["cells"]],
            [("short", "today", 4), ("other", "tomorrow", 3)],
        )
        self.assertEqual(len(whole["missing"]), 2)
        self.assertIn("    a GPU, tomorrow, commit none", list(table.lines(whole)))
        self.assertEqual(merge.merged([whole])["cells"], whole["cells"])

    def test_parts_of_one_run_are_put_beside_each_other(self):
        first, second = json.loads(json.dumps(self.data)), json.loads(json.dumps(self.data))
        del first["cells"][0]["points"]["ours-strict"]
        second["cells"][0]["points"] = {"ours-strict": self.cell["points"]["ours-strict"]}
        (cell,) = merge.merged([first, second], one_run=True)["cells"]
        self.assertEqual(cell["points"].keys(), self.cell["points"].keys())
        self.assertEqual(cell["ours"]["ours-strict"], self.cell["ours"]["ours-strict"])
        second["machine"]["commit"] = "another"
        with self.assertRaises(ValueError):
            merge.merged([first, second], one_run=True)

    def test_nothing_was_run(self):
        empty = Results(
            self.results.path,
            {key: self.data[key] for key in ("machine", "order", "options", "configurations", "workloads")},
        )
        empty.miss(workload("short"), workload("long"), CONFIGURATIONS["mps"], [0], "no time left")
        empty.save()
        self.assertEqual(list(table.lines(empty.data))[-1], "not run: short x long: no time left")
        xml.etree.ElementTree.fromstring("\n".join(plot.svg(empty.data)))


if __name__ == "__main__":
    unittest.main()
