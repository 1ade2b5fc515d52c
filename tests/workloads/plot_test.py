#!/usr/bin/env python3
"""gpuctl simulate --plot: plot_test.py GPUCTL."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

GPUCTL = sys.argv.pop()
NAME = 'a<b & "c"'
WORKLOAD = f"""
title = '''Shares of {NAME}'''
[device]
capsm = 4
[[application]]
name = '''{NAME}'''
alone_ms = 1
[[application]]
name = "other"
alone_ms = 2
"""
SVG = "{http://www.w3.org/2000/svg}"


class Plot(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        (self.scratch / "w.toml").write_text(WORKLOAD)

    def simulate(self, plot):
        command = [GPUCTL, "simulate", self.scratch / "w.toml", "--policy", "fcfs,frs", "--plot", plot]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_it_shows_policies_and_applications(self):
        done = self.simulate(self.scratch / "p.svg")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        picture = xml.etree.ElementTree.parse(self.scratch / "p.svg").getroot()
        self.assertEqual(picture.tag, SVG + "svg")
        words = [element.text for element in picture.iter(SVG + "text")]
        for word in (f"Shares of {NAME}", "fcfs", "frs", NAME, "other"):
            self.assertTrue(any(word in text for text in words), (word, words))
        width, height = float(picture.get("width")), float(picture.get("height"))
        for element in picture.iter(SVG + "rect"):
            if element.get("x"):
                self.assertLessEqual(float(element.get("x")) + float(element.get("width")), width)
                self.assertLessEqual(float(element.get("y")) + float(element.get("height")), height)

    def test_a_file_that_cannot_be_written_is_an_error(self):
        done = self.simulate(self.scratch / "none" / "p.svg")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"gpuctl: --plot: {self.scratch}/none/p.svg: cannot be written\n")

    def test_the_workload_is_not_overwritten(self):
        (self.scratch / "link.toml").symlink_to("w.toml")
        for name in ("w.toml", "link.toml"):
            done = self.simulate(self.scratch / name)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"gpuctl: --plot: {self.scratch}/{name}: is the workload itself\n")
        self.assertEqual((self.scratch / "w.toml").read_text(), WORKLOAD)

    def test_more_launches_than_a_run_may_have_are_refused(self):
        (self.scratch / "w.toml").write_text(WORKLOAD + "repeat = 1000000000\n")
        done = self.simulate(self.scratch / "p.svg")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^gpuctl: \S+/w.toml: fcfs: more than 2000000 launches in one run: .*\n$")
        self.assertFalse((self.scratch / "p.svg").exists())


if __name__ == "__main__":
    unittest.main()
