#!/usr/bin/env python3
"""How the things of a day are judged: shell scripts for programs and tools, and a lab without a GPU."""

import os
import pathlib
import signal
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

import day
import day_matrix
import day_table
from compare import difference
from day_matrix import MAX, NOISE, PLAIN, SLICE, DayCell, DayMatrix
from execute import Deadline, Outcome, run
from head import HeadError, Program, parse
from matrix import NO_TIME, RIGHT, SKIPPED, UNSOUND, WRONG, Row
from matrix_test import FakeLab, FakeMps
from tools import AROUND, INSIDE, TOOLS, ToolCell, tool_cells

ATTACH = '[ -z "$IN_SLICE" ] || echo "attached to slice s" >"$GPUSLICE_DEBUG"; '
SCRIPTS = {
    "ordinary": "echo one; echo two >&2",
    "unlike": 'echo "${IN_SLICE:-plain}"',
    "below_max": '[ "$MAX" != yes ] || exit 3; echo one',
    "fails": "echo no such module >&2; exit 1",
    "says_nothing": "exit 0",
    "absent": "echo needs more >&2; exit 77",
    "unsteady": "echo $$",
    "noisy": 'echo one; echo "at 0x7f$$ in process $$, $$.5 ms, /tmp/$$/x" >&2',
    "fault_mine": "echo illegal; exit 5",
    "escapes": 'rm "$GPUSLICE_DEBUG" 2>/dev/null; echo one',
    "about": 'echo "loss ~2.${IN_SLICE:+0}1 within 0.2"',
    "far": 'echo "loss ~2.${IN_SLICE:+9}1 within 0.2"',
}


class Lab(FakeLab):
    """Programs in a slice find in MAX whether it has one."""

    software = True
    maximum = False

    def gpuctl(self, *words):
        self.maximum = self.maximum or words[0] == "set"
        self.said.append(words)

    def in_slice(self, command):
        return [*super().in_slice(["env", f"MAX={'yes' if self.maximum else 'no'}"]), *command]

    def sms(self):
        return 9

    def leave(self):
        pass


class Phases(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        self.lab = Lab(self.scratch)
        self.lab.said = []
        busy = mock.patch.object(day_matrix, "Busy")
        busy.start().return_value.__enter__.return_value.starts = 1
        self.addCleanup(busy.stop)
        printed = mock.patch("builtins.print")
        self.printed = printed.start()
        self.addCleanup(printed.stop)

    def script(self, name, text):
        path = self.scratch / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def judged(self, *names, kinds=day_matrix.KINDS, seconds=100, more=()):
        """{(program, kind): row}"""
        cells = [
            DayCell(Program(name, self.script(name, ATTACH + SCRIPTS[name]), name), 0, "both", self.scratch / name)
            for name in names
        ]
        kept = self.scratch / "kept-of-failures"
        kept.mkdir(exist_ok=True)
        self.matrix = DayMatrix(self.lab, [*cells, *more], 4, None, kept)
        self.matrix.all_modes(["software"], kinds, Deadline(seconds))
        return {(row.program, row.run): row for row in self.matrix.rows}

    def verdicts(self, rows, name):
        return [rows[name, kind].verdict for kind in (PLAIN, *day_matrix.KINDS) if (name, kind) in rows]

    def test_what_is_as_plain(self):
        rows = self.judged("ordinary", "noisy", "about", "fault_mine")
        for name in ("ordinary", "noisy", "about", "fault_mine"):
            self.assertEqual(self.verdicts(rows, name), [RIGHT] * 4, rows[name, SLICE].note)

    def test_what_is_not_as_plain_is_wrong_where_it_is_not(self):
        rows = self.judged("unlike", "below_max", "far")
        self.assertEqual(self.verdicts(rows, "unlike"), [RIGHT, WRONG, WRONG, WRONG])
        self.assertEqual(self.verdicts(rows, "far"), [RIGHT, WRONG, WRONG, WRONG])
        self.assertEqual(rows["below_max", SLICE].verdict, RIGHT)
        self.assertEqual(rows["below_max", MAX].verdict, WRONG)
        self.assertIn("plain exit 0, got exit 3", rows["below_max", MAX].note)
        self.assertEqual(
            sorted(path.name for path in self.matrix.kept.iterdir() if "unlike" in path.name and MAX in path.name),
            [f"software.max.unlike.0.both.0.{kind}" for kind in ("err", "log", "out")],
        )

    def test_what_follows_the_sms_it_is_told_of_counts_where_it_is_told_of_all(self):
        for told, verdicts in (("", [RIGHT, WRONG, WRONG, WRONG]), ("sums \\w+", [RIGHT, WRONG, RIGHT, RIGHT])):
            with self.subTest(told):
                path = self.script("follows", ATTACH + 'echo "sums ${IN_SLICE:-plain}"')
                program = Program("follows", path, "follows", told=told)
                rows = self.judged(more=[DayCell(program, 0, "both", path)])
                self.assertEqual(self.verdicts(rows, "follows"), verdicts)

    def test_what_is_nothing_plain_is_not_judged(self):
        rows = self.judged("fails", "says_nothing", "absent")
        for name, verdict in (("fails", UNSOUND), ("says_nothing", UNSOUND), ("absent", SKIPPED)):
            self.assertEqual(self.verdicts(rows, name), [verdict])
        self.assertIn("no such module", rows["fails", PLAIN].note)
        self.assertEqual(rows["absent", PLAIN].note, "needs more")

    def test_what_differs_from_run_to_run_is_not_judged(self):
        rows = self.judged("unsteady")
        self.assertEqual(self.verdicts(rows, "unsteady"), [RIGHT, UNSOUND, UNSOUND, UNSOUND])
        self.assertIn("plain runs differ", rows["unsteady", SLICE].note)

    def test_what_escapes_from_its_slice_is_wrong(self):
        rows = self.judged("escapes")
        self.assertEqual(self.verdicts(rows, "escapes"), [RIGHT, WRONG, WRONG, WRONG])
        self.assertIn(day_matrix.OUTSIDE, rows["escapes", SLICE].note)

    def test_each_process_must_be_there(self):
        path = self.script("two", ATTACH + "echo one")
        cell = DayCell(Program("two", path, "two", attached=2), 0, "both", path)
        self.assertEqual(self.judged(more=[cell], kinds=(SLICE,))["two", SLICE].verdict, WRONG)
        path.write_text(path.read_text() + '[ -z "$IN_SLICE" ] || echo "attached to slice s" >>"$GPUSLICE_DEBUG"\n')
        (self.scratch / "kept-of-failures").rename(self.scratch / "before")
        self.assertEqual(self.judged(more=[cell], kinds=(SLICE,))["two", SLICE].verdict, RIGHT)

    def test_the_slices_are_set_as_the_kind_says(self):
        self.judged("ordinary")
        self.assertEqual(self.lab.said, [("set", "s", "max=4"), ("create-slice", "kept", "--reserve", 2)])

    def test_those_at_fault_go_by_themselves_under_mps(self):
        self.lab.mps = FakeMps()
        self.judged("ordinary", "fault_mine", kinds=(SLICE,))
        said = [call.args[0] for call in self.printed.call_args_list]
        self.assertEqual([line.endswith("4 at a time") for line in said], [True, True, False, False], said)
        self.assertEqual(len(self.lab.mps.mends), 2)

    def test_without_time_nothing_is_judged(self):
        rows = self.judged("ordinary", seconds=0)
        self.assertEqual([row.note for row in rows.values()], [NO_TIME])

    def test_a_tool_stands_inside_and_around(self):
        """A tool that says whether it runs in the slice, and finds no kernel there."""
        tool = self.script("tool", 'echo "$IN_SLICE" >>' + f"{self.scratch}/where" + '; "$@"; echo "SUMMARY: 0 errors"')
        one = TOOLS[0].__class__("tool", (str(tool),), r"SUMMARY: \d+", "SUMMARY: 0")
        path = self.script("program", ATTACH + "echo sums 1")
        cells = [ToolCell(one, place, str(tool), path, "both") for place in (INSIDE, AROUND)]
        rows = self.judged(more=cells, kinds=(SLICE,))
        self.assertEqual(
            {name: row.verdict for (name, _), row in rows.items()}, {"tool inside": RIGHT, "tool around": RIGHT}
        )
        self.assertEqual((self.scratch / "where").read_text().split(), ["yes"])


def outcome(out="", err="", status=0):
    return Outcome(status, out, err, 1.0)


class Comparisons(unittest.TestCase):
    def test_noise_counts_on_stdout_alone(self):
        for left, right in (
            ("W1127 23:11:50.123456 1234 file.py:12] slow", "W1127 23:12:01.000001 99 file.py:12] slow"),
            ("[rank0]: process 12 took 1.5 ms", "[rank0]: process 13 took 12 ms"),
            (
                "2026-11-27 23:11:50,123 at 0xdead in /tmp/day.abc/x",
                "2026-11-28 03:11:50,999 at 0xbeef in /tmp/day.x/y",
            ),
            ("used 12 MiB of 80 GiB", "used 13 MiB of 81 GiB"),
        ):
            self.assertIsNone(difference(outcome(err=left), outcome(err=right), noise=NOISE), left)
            self.assertIsNotNone(difference(outcome(out=left), outcome(out=right), noise=NOISE), left)
        self.assertIsNotNone(difference(outcome(err="line 12"), outcome(err="line 13"), noise=NOISE))
        self.assertIsNotNone(difference(outcome(err="KeyError"), outcome(err=""), noise=NOISE))

    def test_about(self):
        self.assertIsNone(difference(outcome("loss ~2.30 within 0.05"), outcome("loss ~2.34 within 0.05")))
        for other in (
            "loss ~2.36 within 0.05",
            "loss ~2.30 within 0.5",
            "gain ~2.30 within 0.05",
            "loss ~nan within 0.05",
            "",
        ):
            self.assertIsNotNone(difference(outcome("loss ~2.30 within 0.05"), outcome(other)), other)


# Waits for a child that the signal ends, and says how it ended.
PARENT = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
child = os.fork()
if child == 0:
    time.sleep(60)
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
CATCHES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("ready", flush=True)
time.sleep(60)
"""
IGNORES = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


class Signals(unittest.TestCase):
    def run_one(self, text, number=signal.SIGINT):
        return run([sys.executable, "-c", text], dict(os.environ), 40, signalled=("ready", number))

    def test_the_group_gets_it_when_the_line_is_there(self):
        done = self.run_one(PARENT)
        self.assertEqual((done.status, done.ended, done.out), (0, "by itself", "ready\nchild -2\n"))
        done = self.run_one(CATCHES, signal.SIGTERM)
        self.assertEqual((done.status, done.ended), (9, "by itself"))

    def test_one_that_never_says_it_gets_none(self):
        self.assertEqual(self.run_one("import sys; sys.exit(4)").status, 4)

    def test_one_that_does_not_end_then_is_killed(self):
        with mock.patch("execute.ENDS_WITHIN_S", 0.3):
            done = self.run_one(IGNORES)
        self.assertEqual((done.status, done.ended), (-signal.SIGKILL, "timeout"))
        self.assertLess(done.limit_s, 40)

    def test_the_head_says_which(self):
        path = pathlib.Path("x.py")
        self.assertEqual(parse(path, "# compat: a\n# signal: INT ready").signalled, ("ready", signal.SIGINT))
        for wrong in ("INT", "NONE ready"):
            with self.assertRaises(HeadError):
                parse(path, f"# compat: a\n# signal: {wrong}")
        self.assertEqual([parse(path, f"# compat: a{more}").attached for more in ("", "\n# attached: 2")], [1, 2])
        with self.assertRaises(HeadError):
            parse(path, "# compat: a\n# attached: -1")


SAID = {
    "memcheck": ("sums 1\n========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0),
    "fault_memcheck": (
        "========= Invalid __global__ write of size 4 bytes\n=========     at write_past(int *, int)+0x80\n"
        "=========     Address 0x7f12 is out of bounds\n========= ERROR SUMMARY: 1 error\n",
        9,
    ),
    "ncu": ('==PROF== Connected to process 12\n==PROF== Profiling "add": 0%....100% - 8 passes\nsums 1\n', 0),
    "cuda_gdb": ("sums 1\n[Inferior 1 (process 4711) exited normally]\nNo stack.\n", 1),
    "fault_cuda_gdb": (
        "Thread 1 received signal CUDA_EXCEPTION_14, Warp Illegal Address.\n"
        "#0  0x7f10 in write_nowhere<<<(1,1,1),(32,1,1)>>> ()\n",
        0,
    ),
}


class Tools(unittest.TestCase):
    def cell(self, name):
        tool = next(tool for tool in TOOLS if tool.name == name)
        return ToolCell(tool, INSIDE, f"/x/{tool.command[0]}", pathlib.Path("/p/program"), "both")

    def test_what_they_say_plain_is_understood(self):
        for name, (text, status) in SAID.items():
            plain = outcome(text, status=status)
            self.assertIsNone(self.cell(name).unsound(plain, plain), name)
            other = outcome(
                text.replace("4711", "4712").replace("0x7f1", "0x7f2").replace(" 12\n", " 13\n"), status=status
            )
            self.assertIsNone(self.cell(name).difference(plain, other), name)

    def test_what_they_do_not_say_is_seen(self):
        for name, instead in (
            ("memcheck", "Target application terminated before first instrumented API call"),
            ("fault_memcheck", "========= ERROR SUMMARY: 0 errors"),
            ("ncu", "==WARNING== No kernels were profiled."),
            ("cuda_gdb", "[Inferior 1 (process 4711) exited with code 0377]"),
        ):
            plain, other = outcome(SAID[name][0], status=SAID[name][1]), outcome(instead, status=SAID[name][1])
            self.assertIn("plain says", self.cell(name).difference(plain, other), name)
            self.assertIn("plain: exit", self.cell(name).unsound(other, other), name)

    def test_another_kernel_or_status_is_another_thing(self):
        plain = outcome(SAID["ncu"][0])
        renamed = outcome(SAID["ncu"][0].replace('"add"', '"add_worker"'))
        self.assertIn('"add_worker"', self.cell("ncu").difference(plain, renamed))
        self.assertIn("exit 255", self.cell("ncu").difference(plain, outcome(SAID["ncu"][0], status=255)))

    def test_those_that_are_not_here_are_named(self):
        tools = [types.SimpleNamespace(name="nsys", command=("nsys",), path=lambda: None)]
        self.assertEqual(
            tool_cells(tools, {}, "both"), ([], [(f"nsys {place}", "no nsys here") for place in (INSIDE, AROUND)])
        )


class Programs(unittest.TestCase):
    def test_their_heads_and_their_syntax_are_right(self):
        programs, errors = day.read_programs(None)
        self.assertEqual(errors, [])
        for program in programs:
            if program.is_python:
                compile(program.path.read_text(encoding="utf-8"), program.path, "exec")
                self.assertTrue(program.modules, f"{program.name}: what does it need?")

    def test_the_documents_name_each(self):
        text = (day.HERE.parents[1] / "docs/testing.md").read_text(encoding="utf-8")
        for program in day.read_programs(None)[0]:
            self.assertIn(f"`{program.name}`", text)


class Tables(unittest.TestCase):
    def test_rows_are_programs_and_columns_kinds(self):
        rows = [
            *(Row("mps", kind, "good", "both", RIGHT) for kind in (PLAIN, SLICE, MAX)),
            Row("mps", PLAIN, "bad", "both", RIGHT),
            Row("mps", SLICE, "bad", "both", WRONG, "exit 3"),
            Row("mps", MAX, "bad", "both", SKIPPED, NO_TIME),
            Row("mps", PLAIN, "broken", "both", UNSOUND, "fails"),
            Row("", "", "absent", "-", SKIPPED, "no Python module x"),
            Row("mps", PLAIN, "late", "both", SKIPPED, NO_TIME),
            Row("mps", PLAIN, "cut", "both", RIGHT),
        ]
        lines = day_table.report(rows, ["good", "bad", "broken", "absent", "late", "cut"], ["mps"], [SLICE, MAX])
        grid = [line.split() for line in lines[lines.index("") + 1 :]]
        self.assertEqual(
            grid,
            [
                ["mps"],
                [PLAIN, SLICE, MAX],
                ["good", "ok", "ok", "ok"],
                ["bad", "ok", "WRONG", "."],
                ["broken", "-", "-", "-"],
                ["absent", "-", "-", "-"],
                ["late", ".", ".", "."],
                ["cut", "ok", ".", "."],
                ["ok", "of", "judged", "3/3", "1/2", "1/1"],
            ],
        )
        self.assertIn("  bad mps slice: exit 3", lines)
        self.assertIn("not judged: 2 programs", lines)
        self.assertIn("  absent: no Python module x", lines)
        self.assertIn("no time left for 2 runs", lines)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
