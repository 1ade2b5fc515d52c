#!/usr/bin/env python3
"""The parts of the compatibility suite's runner that need no GPU."""

import dataclasses
import os
import pathlib
import sys
import tempfile
import unittest

import compare
import execute
import head
import table
from matrix import Row

import build

HERE = pathlib.Path(__file__).resolve().parent


def parse(text, name="some_program.cu"):
    return head.parse(pathlib.Path(name), text)


class Head(unittest.TestCase):
    def test_defaults(self):
        program = parse("// compat: atomics on shared memory\n#include <cstdio>\n// libs: cublas\n")
        self.assertEqual(
            (program.name, program.feature, program.builds), ("some_program", "atomics on shared memory", head.BUILDS)
        )
        self.assertEqual((program.libs, program.variants, program.soft, program.unordered), ((), ((),), False, False))

    def test_all_keys(self):
        program = parse(
            "// compat: a\n// libs: cublas cufft\n// flags: -std=c++17 -Xcompiler '-O1 -g'\n"
            "// builds: rdc ptx\n// arch: 90a\n"
            "// args:\n// args: 3 'a b'\n// soft: yes\n// output: unordered\n// needs: peer|file\n"
        )
        self.assertEqual(program.libs, ("cublas", "cufft"))
        self.assertEqual(program.flags, ("-std=c++17", "-Xcompiler", "-O1 -g"))
        self.assertEqual(program.builds, ("rdc", "ptx"))
        self.assertEqual(program.variants, ((), ("3", "a b")))
        self.assertEqual(
            (program.arch, program.soft, program.unordered, program.needs), ("90a", True, True, ("peer", "file"))
        )

    def test_the_head_ends_at_other_lines(self):
        self.assertEqual(parse("// compat: a\n// Prose, with a colon: here.\n\n// soft: yes\n").soft, False)

    def test_python(self):
        program = parse("#!/usr/bin/env python3\n# compat: a\n# modules: torch triton\n", "a.py")
        self.assertEqual((program.builds, program.modules), (("python",), ("torch", "triton")))

    def test_mistakes_are_said(self):
        for text, words in (
            ("// builds: ptx\n// compat: a\n", "first line"),
            ("", "first line"),
            ("int main() {}\n", "first line"),
            ("// compat: a\n// build: ptx\n", "is builds meant"),
            ("// compat: a\n// builds: pxt\n", "no such build: pxt"),
            ("// compat: a\n// arch: sm_90\n", "architecture"),
            ("// compat: a\n// soft: maybe\n", "soft"),
            ("// compat: a\n// libs: b\n// libs: c\n", "twice"),
            ("// compat: a\n// Prose.\n// soft: yes\n", "soft stands below"),
        ):
            with self.subTest(text), self.assertRaisesRegex(head.HeadError, words):
                parse(text)

    def test_names_tell_which_programs_reach_others(self):
        said = {
            name: parse("// compat: a\n", f"{name}.cu").at_fault
            for name in ("fault_trap", "exits", "streams", "default_stream")
        }
        self.assertEqual(said, {"fault_trap": True, "exits": True, "streams": False, "default_stream": False})

    def test_what_a_program_lacks(self):
        wgmma = parse("// compat: a\n// arch: 90a\n")
        self.assertIsNone(head.lacks(wgmma, "90", 1, (), False))
        self.assertIn("sm_100", head.lacks(wgmma, "100", 1, (), False))
        self.assertIn("software", head.lacks(wgmma, "90", 1, (), True))
        peer = parse("// compat: a\n// needs: peer file\n")
        self.assertIn("two GPUs", head.lacks(peer, "90", 1, (), False))
        self.assertIn("file", head.lacks(peer, "90", 2, ("file",), False))

    def test_a_name_is_taken_once(self):
        with tempfile.TemporaryDirectory() as scratch:
            for room in ("copies", "streams"):
                (pathlib.Path(scratch) / room).mkdir()
                (pathlib.Path(scratch) / room / "same.cu").write_text("// compat: anything\n")
            programs, errors = head.read_all(scratch)
        self.assertEqual(["same"], [program.name for program in programs])
        self.assertEqual([("same", "same.cu is in copies and in streams")], errors)

    def test_every_program_of_the_suite_has_a_head(self):
        for directory, suffix in (("programs", ".cu"), ("frameworks", "_program.py")):
            programs, errors = head.read_all(HERE / directory, suffix)
            self.assertEqual(errors, [])
            self.assertTrue(programs)


class Build(unittest.TestCase):
    def test_code_of_each_build(self):
        self.assertEqual(build.code_options("both", "90"), ["-gencode", "arch=compute_90,code=[sm_90,compute_90]"])
        self.assertEqual(build.code_options("ptx", "90a"), ["-gencode", "arch=compute_90a,code=compute_90a"])
        self.assertEqual(build.code_options("cubin", "90"), ["-gencode", "arch=compute_90,code=sm_90"])
        self.assertEqual(build.code_options("rdc", "90")[-1], "-rdc=true")
        self.assertEqual(build.code_options("shared", "90"), build.code_options("both", "90"))

    def test_first_error(self):
        self.assertEqual(
            build.first_error("a.cu(3): warning #1: x\na.cu(7): error: no such name\n1 error detected\n"),
            "a.cu(7): error: no such name",
        )
        self.assertEqual(build.first_error("nvcc died\n"), "nvcc died")


def outcome(**changes):
    return dataclasses.replace(execute.Outcome(0, "a\nb\n", "", 1.0), **changes)


class Compare(unittest.TestCase):
    def test_same(self):
        self.assertIsNone(compare.difference(outcome(), outcome(wall_s=9)))
        self.assertIsNone(compare.difference(outcome(), outcome(out="b\na\n"), unordered=True))
        self.assertIsNone(compare.difference(outcome(status=-11), outcome(status=-11)))

    def test_different(self):
        for changes, words in (
            ({"status": 3}, "plain exit 0, got exit 3"),
            ({"status": -11}, "got SIGSEGV"),
            ({"out": "a\nc\n"}, "stdout line 2: plain 'b', got 'c'"),
            ({"out": "a\n"}, "got no such line"),
            ({"out": "b\na\n"}, "stdout line 1"),
            ({"err": "x"}, "stderr line 1: plain no such line, got 'x'"),
            ({"status": -9, "ended": "timeout", "limit_s": 20}, "got timeout after 20 s"),
        ):
            with self.subTest(changes):
                self.assertIn(words, compare.difference(outcome(), outcome(**changes)))

    def test_the_end_of_a_message_is_said(self):
        found = compare.difference(outcome(), outcome(status=-6, err="terminate called\n  what():  out of memory\n"))
        self.assertTrue(found.endswith("; last on stderr '  what():  out of memory'"), found)

    def test_unsound(self):
        ordinary, fault = parse("// compat: a\n"), parse("// compat: a\n", "fault_a.cu")
        self.assertIsNone(compare.unsound(ordinary, outcome(), outcome()))
        self.assertIn("exit 2: no memory", compare.unsound(ordinary, outcome(status=2, err="no memory\n"), outcome()))
        self.assertIsNone(compare.unsound(fault, outcome(status=2), outcome(status=2)))
        self.assertIn("differ", compare.unsound(fault, outcome(status=2), outcome(status=3)))
        self.assertIn("timeout", compare.unsound(fault, outcome(ended="timeout"), outcome()))

    def test_sticky_errors(self):
        self.assertTrue(compare.is_sticky(outcome(err="x.cu:3: f(): cudaErrorIllegalAddress\n")))
        self.assertFalse(compare.is_sticky(outcome(err="x.cu:3: f(): cudaErrorInvalidValue\n")))


class Execute(unittest.TestCase):
    def run_shell(self, text, limit_s=20, deadline=None):
        return execute.run(["sh", "-c", text], dict(os.environ), limit_s, deadline)

    def test_status_and_output(self):
        done = self.run_shell("echo out; echo err >&2; exit 3")
        self.assertEqual((done.status, done.out, done.err, done.ended), (3, "out\n", "err\n", "by itself"))
        self.assertEqual(self.run_shell("kill -SEGV $$").status_text(), "SIGSEGV")

    def test_limits(self):
        late = self.run_shell("echo begun; sleep 60 & wait", 0.3)
        self.assertEqual((late.ended, late.out), ("timeout", "begun\n"))
        self.assertEqual(self.run_shell("sleep 60", 20, execute.Deadline(0.2)).ended, "no time left")

    def test_nobody_waits_for_what_outlives_the_program(self):
        self.assertLess(self.run_shell("sleep 5 & echo done").wall_s, 4)


class Table(unittest.TestCase):
    rows = [
        Row("time-sliced", "plain", "a", "both", "right"),
        Row("time-sliced", "slice", "a", "both", "right", "", 2.0, 1.0),
        Row("time-sliced", "slice", "b", "both", "wrong", "exit 3"),
        Row("time-sliced", "slice", "c", "both", "skipped", "no time left"),
        Row("time-sliced", "slice", "a", "ptx", "right", "", 4.0, 1.0),
    ]

    def test_counts(self):
        lines = [line.split() for line in table.counts(self.rows)]
        self.assertEqual(lines[0], ["both", "ptx", "unsound", "skipped"])
        self.assertEqual(lines[2], ["time-sliced", "slice", "1/2", "1/1", "0", "1"])

    def test_what_has_no_build_is_counted_as_skipped(self):
        lines = table.counts(
            [Row("", "compile", "a", "both", "right"), Row("", "compile", "b", "-", "skipped", "needs two GPUs")]
        )
        self.assertEqual(
            [line.split() for line in lines], [["both", "unsound", "skipped"], ["compile", "1/1", "0", "1"]]
        )

    def test_report_names_failures_and_ratios(self):
        text = "\n".join(table.report(self.rows))
        self.assertIn("WRONG: 1\n  b [both] time-sliced slice: exit 3", text)
        self.assertIn("skipped: 1\n  1 no time left", text)
        self.assertRegex(text, r"time-sliced slice +3\.000")

    def test_nothing_right_is_not_all_right(self):
        self.assertFalse(table.all_right(self.rows))
        self.assertTrue(table.all_right(self.rows[:2]))
        self.assertFalse(table.all_right(self.rows[3:4]))
        self.assertFalse(table.all_right([]))


class Builds(unittest.TestCase):
    """With a compiler that is a script: what is up to date is not made again."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "toolkit/bin").mkdir(parents=True)
        nvcc = self.root / "toolkit/bin/nvcc"  # writes no depfile
        nvcc.write_text(
            '#!/bin/sh\necho "$@" >>"$0.log"\n[ "$1" = --version ] && exit\n'
            'for last; do case $to in next) to=$last;; esac; [ "$last" = -o ] && to=next; done\n'
            'grep -q broken "$last" 2>/dev/null && { echo "a.cu(1): error: broken"; exit 1; }\ncp /bin/true "$to"\n'
        )
        nvcc.chmod(0o755)
        self.nvcc = nvcc
        self.source = self.root / "a.cu"
        self.write("// compat: a\n// builds: both shared ptx\n")

    def write(self, text):
        self.source.write_text(text)
        self.program = head.parse(self.source, text)

    def make(self):
        """What was made, and how often the compiler ran."""
        (self.root / "toolkit/bin/nvcc.log").unlink(missing_ok=True)
        made = build.Builder(self.root / "out", "90", nvcc=self.nvcc).make_all([self.program], head.BUILDS, 2)
        return made, len((self.root / "toolkit/bin/nvcc.log").read_text().splitlines()) - 1

    def test_only_what_changed_is_made(self):
        made, ran = self.make()
        self.assertEqual(set(made), {("a", "both"), ("a", "shared"), ("a", "ptx")})
        self.assertEqual(ran, 5)  # two objects, three programs
        self.assertEqual(self.make()[1], 0)
        self.write("// compat: a\n// builds: both shared ptx\n// libs: cublas\n")
        self.assertEqual(self.make()[1], 5)

    def test_a_header_counts_for_all_builds(self):
        header = self.root / "a.h"
        header.write_text("1")
        script = self.nvcc.read_text().replace(
            "cp /bin", f'case $to in *.o) echo "$to: a.cu {header}" >"$to.d";; esac; cp /bin'
        )
        self.nvcc.write_text(script)
        self.assertEqual([self.make()[1] for _ in range(2)], [5, 0])
        header.write_text("2")
        self.assertEqual(self.make()[1], 5)

    def test_an_error_is_kept_until_the_source_changes(self):
        self.write("// compat: a\n// builds: both\nbroken\n")
        for runs in (1, 0):
            made, ran = self.make()
            self.assertEqual((made["a", "both"].error, ran), ("a.cu(1): error: broken", runs))
        self.write("// compat: a\n// builds: both\nmended\n")
        self.assertEqual(self.make()[0]["a", "both"].error, "")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
