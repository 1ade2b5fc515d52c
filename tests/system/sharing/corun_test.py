"""bench/corun.sh on the software GPU: one small cell, what it leaves, and how it says what it did not run. No
speeds."""

import json
import pathlib
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from tests.system.harness import instance

CORUN = pathlib.Path(__file__).resolve().parents[3] / "bench/corun.sh"
CELL = ("--only-ls", "short", "--only-batch", "compute-100us", "--rounds", "1", "--seconds", "0.3", "--settle", "0.1")


class Corun(instance.SystemTest):
    def corun(self, *options):
        command = [CORUN, "--build-dir", instance.BUILD, "--software", "--out", self.scratch / "out", *options]
        done = subprocess.run(
            [str(word) for word in command], env=self.env, capture_output=True, text=True, timeout=200
        )
        path = self.scratch / "out/corun.json"
        return done, json.loads(path.read_text()) if path.exists() else None

    def test_a_cell(self):
        done, data = self.corun(*CELL, "--configurations", "alone,mps,ours-strict")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(data["missing"], [])
        self.assertEqual(
            [(run["ls"], run["batch"], run["configuration"]) for run in data["runs"]],
            [
                ("short", None, "alone"),
                (None, "compute-100us", "alone"),
                ("short", "compute-100us", "mps"),
                ("short", "compute-100us", "ours-strict"),
            ],
        )
        (cell,) = data["cells"]
        self.assertEqual(cell["stock_frontier"], ["mps"])
        self.assertEqual((list(cell["ours"]), cell["best_of_ours"]), (["ours-strict"], "ours-strict"))
        for at in cell["points"].values():
            self.assertGreater(at["p99_us"]["median"], 0)
            self.assertGreater(at["throughput"]["median"], 0)
        self.assertIn("\n* mps ", done.stdout)
        self.assertEqual(done.stdout, (self.scratch / "out/corun.txt").read_text())
        xml.etree.ElementTree.parse(self.scratch / "out/corun.svg")

    def test_programs_play_all_rounds_of_a_quick_run(self):
        done, data = self.corun(*CELL, "--quick", "--rounds", "2", "--configurations", "mps-stream")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([run["round"] for run in data["runs"]], [0, 1])
        self.assertEqual(data["cells"][0]["points"]["mps-stream"]["p99_us"]["rounds"], 2)

    def test_settings_change_live_in_one_start(self):
        done, data = self.corun(*CELL, "--quick", "--live", "--configurations", "isolated,isolated-2x")
        self.assertEqual((done.returncode, data["missing"]), (0, []), done.stderr)
        self.assertEqual([run["configuration"] for run in data["runs"]], ["isolated", "isolated-2x"])

    def test_keys_of_the_daemon(self):
        long = "ours-strict:evict_deadline_ms=70:block_target_us=30"
        done, data = self.corun(*CELL, "--configurations", f"{long},mps,ours-strict:no_such_key=1")
        self.assertEqual([run["configuration"] for run in data["runs"]], ["mps", long])
        self.assertIn("evict_deadline_ms = 70, block_target_us = 30", data["configurations"][long]["description"])
        (missing,) = data["missing"]
        self.assertEqual(missing["configuration"], "ours-strict:no_such_key=1")
        self.assertIn("no_such_key", missing["reason"])

    def test_no_time(self):
        done, data = self.corun(*CELL, "--configurations", "mps", "--limit-s", "0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([entry["reason"] for entry in data["missing"]], ["no time left"])
        self.assertIn("not run: short x compute-100us: no time left", done.stdout)

    @unittest.skipIf(shutil.which("nvidia-smi"), "there may be a GPU")
    def test_no_gpu(self):
        command = [str(CORUN), "--build-dir", str(instance.BUILD), "--out", str(self.scratch / "out")]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr.splitlines()[-1], "corun: no GPU here (nvidia-smi); --software takes the software GPU"
        )

    def test_unknown_names(self):
        for options in (
            ("--only-ls", "nope"),
            ("--only-batch", "nope"),
            ("--configurations", "mps,nope"),
            ("--configurations", "nope:a=1"),
            ("--configurations", "ours:nope"),
            ("--configurations", "mps:nope=1"),
        ):
            with self.subTest(options):
                done, data = self.corun(*options)
                self.assertNotEqual(done.returncode, 0)
                self.assertIsNone(data)
                self.assertIn("nope" if options[1] != "mps:nope=1" else "mps has no gpuctld", done.stderr)


if __name__ == "__main__":
    instance.main()
