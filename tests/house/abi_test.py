#!/usr/bin/env python3
"""The public interface of libgpuslice is the one that is kept in kept_interface.abi, as abidiff sees it:
abi_test.py HEADERS [--keep]. HEADERS: where <gpuslice/gpuslice.h> is. --keep writes the file: for a function that is
new, not for a change. Skipped without abidiff (abigail-tools).

The library has no types in its debug information, and its sources take their functions from the header. So a library
is made of the header, with bodies that do nothing."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HEADER = pathlib.Path(sys.argv[1], "gpuslice/gpuslice.h")
KEPT = pathlib.Path(__file__).with_name("kept_interface.abi")
SKIPPED = 77
FUNCTION = re.compile(r"^(\w[^;{}()]*\bgpuslice_\w+\([^)]*\));", re.MULTILINE)
QUIET = ("--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def compiled(header, place):
    """A library with the functions of the text of a header."""
    source, library = pathlib.Path(place, "interface.c"), pathlib.Path(place, "interface.so")
    source.write_text(FUNCTION.sub(r"\1 { __builtin_trap(); }", header))
    done = run("cc", "-g", "-shared", "-fPIC", "-Wl,-soname,libgpuslice.so.0", source, "-o", library)
    assert done.returncode == 0, done.stderr
    return library


def differences(header):
    """What abidiff says of it; "": nothing."""
    with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as place:
        done = run("abidiff", KEPT, compiled(header, place))
    return "" if done.returncode == 0 else done.stdout + done.stderr


class Interface(unittest.TestCase):
    def setUp(self):
        self.text = HEADER.read_text()

    def test_it_is_the_one_that_is_kept(self):
        self.assertEqual(differences(self.text), "")

    def test_it_sees_changes(self):
        for old, new, seen in (
            ("uint32_t capsm;", "uint64_t capsm;", "gpuslice_grant"),
            ("int gpuslice_attach(const char* slice);", "long gpuslice_attach(const char* slice);", "gpuslice_attach"),
            ("int gpuslice_version(void);", "", "1 Removed"),
            ("int gpuslice_version(void);", "int gpuslice_version(void);\nint gpuslice_more(void);", "gpuslice_more"),
        ):
            with self.subTest(new or f"without {old}"):
                self.assertEqual(self.text.count(old), 1)
                self.assertIn(seen, differences(self.text.replace(old, new)))


if __name__ == "__main__":
    if not shutil.which("abidiff"):
        print("skipped: no abidiff here (abigail-tools)")
        sys.exit(SKIPPED)
    if "--keep" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            KEPT.write_text(run("abidw", *QUIET, compiled(HEADER.read_text(), scratch)).stdout)
        sys.exit()
    unittest.main(argv=sys.argv[:1])
