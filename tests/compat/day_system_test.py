#!/usr/bin/env python3
"""The things of a day on the software GPU, those of them that need no framework: day_system_test.py BUILD.

A fork after the GPU was used, execs that fail and succeed, Ctrl-C and SIGTERM in mid-kernel, a write where there is no
memory; a tool that is a script; and programs that are not as plain, which must be found."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("exec_another", "fault_interrupted", "fault_terminated", "fault_wild_write", "fork_uses_gpu")
KINDS = ("plain", "slice", "max", "reserve")
# Its own process loads the library too, as that of a tool does that runs inside.
TOOL = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@" || exit
echo "========= ERROR SUMMARY: 0 errors"
"""
COUNTS = """# compat: how many SMs the program is told of, which a max makes fewer
import ctypes
cuda, sms = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGetAttribute(ctypes.byref(sms), 16, 0) == 0
print("SMs", sms.value)
"""
ESCAPES = """# compat: a program that drops its environment, and so its slice
import os, sys
if len(sys.argv) == 1:
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "SOFTGPU_TABLE") if name in os.environ}
    os.execve(sys.executable, [sys.executable, __file__, "again"], kept)
import ctypes
print("cuInit", ctypes.CDLL("libcuda.so.1").cuInit(0))
"""
build = None


class Day(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        (self.scratch / "bin").mkdir()

    def day(self, *options):
        """The exit status, {(program, kind): row}, and what was printed."""
        written, kept = self.scratch / "day.json", self.scratch / "failed"
        command = [sys.executable, HERE / "day.py", "--build", build, "--modes", "software", "--jobs", "2"]
        done = subprocess.run(
            ["env", f"PATH={self.scratch}/bin:/usr/bin:/bin", *command, "--json", written, "--keep", kept, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        self.assertTrue(written.exists(), done.stdout + done.stderr)
        rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
        return done.returncode, {(row["program"], row["run"]): row for row in rows}, done.stdout

    def test_all_of_them_are_as_plain(self):
        tool = self.scratch / "bin/compute-sanitizer"
        tool.write_text(TOOL, encoding="utf-8")
        tool.chmod(0o755)
        status, rows, said = self.day("--only", ",".join((*PROGRAMS, "memcheck")))
        names = (*PROGRAMS, "memcheck inside", "memcheck around")
        self.assertEqual(
            {(name, kind): rows[name, kind]["verdict"] for name in names for kind in KINDS},
            {(name, kind): "right" for name in names for kind in KINDS},
            said,
        )
        self.assertEqual(status, 0)
        self.assertTrue(said.splitlines()[-1].startswith("ok of judged"), said)

    def test_what_is_not_as_plain_is_found(self):
        for name, text in (("counts", COUNTS), ("escapes", ESCAPES)):
            (self.scratch / f"{name}.py").write_text(text, encoding="utf-8")
        status, rows, said = self.day("--programs", self.scratch, "--without-tools", "--runs", "slice,max")
        verdicts = {key: row["verdict"] for key, row in rows.items()}
        self.assertEqual(
            verdicts,
            {
                ("counts", "plain"): "right",
                ("counts", "slice"): "right",
                ("counts", "max"): "wrong",
                ("escapes", "plain"): "right",
                ("escapes", "slice"): "wrong",
                ("escapes", "max"): "wrong",
            },
            said,
        )
        self.assertIn("in the slice were fewer of its processes", rows["escapes", "slice"]["note"])
        self.assertIn("plain 'SMs 8', got 'SMs 4'", rows["counts", "max"]["note"])
        self.assertEqual((self.scratch / "failed/software.max.counts.0.python.0.out").read_text(), "SMs 4\n")
        self.assertEqual(status, 1)


if __name__ == "__main__":
    build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
