#!/usr/bin/env python3
"""Tests that the user's page of benchmarks says what a small file of results says."""

import copy
import json
import pathlib
import unittest

from bench import pages
from bench.corun.configurations import with_changes
from bench.corun.workloads import BATCH, LS

SAMPLE = pathlib.Path(__file__).parent / "pages_sample.json"


class PagesTest(unittest.TestCase):
    def setUp(self):
        self.data = json.loads(SAMPLE.read_text(encoding="utf-8"))

    def text(self):
        return "\n".join(pages.page(self.data, SAMPLE.name))

    def point(self, ls, batch, configuration):
        (cell,) = [cell for cell in self.data["cells"] if (cell["ls"], cell["batch"]) == (ls, batch)]
        return cell["points"][configuration]

    def test_the_stock_setting_with_the_least_latency_stands_beside_ours(self):
        self.assertIn(
            "| short kernels; thread blocks of 100 us | 120 us | MPS, client priorities"
            " | 170 us (160 us to 180 us) | 99.0 | 180 us (175 us to 190 us) | 99.0 |",
            self.text(),
        )

    def test_the_sentence_counts_pairs_and_compares_batch(self):
        self.assertIn("In 2 of 2 pairs the server is no slower", self.text())
        self.assertIn("batch has 0.98 to 1.00 of its throughput there", self.text())

    def test_a_latency_outside_of_the_ranges_is_slower(self):
        self.point("short", "compute-100us", "ours-priority")["p99_us"].update(median=200, least=190, greatest=210)
        self.assertIn("In 1 of 2 pairs the server is no slower", self.text())

    def test_requests_that_were_not_served_are_said(self):
        self.point("decode", "train", "mps-stream")["unserved"] = 3
        self.assertIn("90 ms (80 ms to 100 ms), 3 not served", self.text())

    def test_questions_without_figures_are_left_out(self):
        self.assertNotIn("without MPS", self.text())
        self.assertEqual(self.text().count("\n## "), 1)

    def test_the_page_names_no_commit(self):
        self.assertNotIn(self.data["machine"]["commit"], self.text())

    def test_results_of_two_commits_or_of_the_software_gpu_are_refused(self):
        other = copy.deepcopy(self.data)
        other["cells"][0]["machine"] = {**other["machine"], "commit": "another"}
        with self.assertRaisesRegex(ValueError, "not of one commit"):
            list(pages.page(other, "x.json"))
        self.data["software"] = True
        with self.assertRaisesRegex(ValueError, "software GPU"):
            self.text()

    def test_nothing_to_say_is_an_error(self):
        self.data["cells"] = self.data["cells"][:1]
        del self.data["cells"][0]["points"]["ours-priority"]
        with self.assertRaisesRegex(ValueError, "no question"):
            self.text()

    def test_a_pair_is_measured_in_one_run_with_all_that_its_questions_ask_for(self):
        (line,) = [line for line in pages.commands() if "--only-ls short --only-batch compute-100us" in line]
        for question in pages.QUESTIONS:
            if ("short", "compute-100us") in question.pairs:
                self.assertIn(question.ours, line)

    def test_percentages_for_each_of_eight_are_for_eight(self):
        lines = [line for line in pages.commands() if "-of-eight" in line]
        self.assertTrue(lines)
        self.assertTrue(all("--only-batch eight" in line for line in lines))

    def test_every_question_asks_for_what_can_be_run(self):
        for question in pages.QUESTIONS:
            for name in (question.ours, *question.stock):
                self.assertTrue(with_changes(name))
            for ls, batch in question.pairs:
                self.assertIn(ls, LS)
                self.assertIn(batch, BATCH)


if __name__ == "__main__":
    unittest.main()
