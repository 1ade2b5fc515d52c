#!/usr/bin/env python3
"""What libgpuslice shows to programs and needs of a system: library_test.py LIBRARY SYMBOLS HEADERS.

SYMBOLS is the list of the exported functions in the form of Debian's symbols files, which the package uses as well. A
function that goes or changes there needs another soname; a new one needs a line. HEADERS: where <gpuslice/gpuslice.h>
is. kept_interface.c beside this file is what programs of releases assume of its types."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from old_systems import too_new

LIBRARY, SYMBOLS, HEADERS = sys.argv[1:4]
PROGRAM = pathlib.Path(__file__).with_name("kept_interface.c")
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def objections(headers):
    """What the compiler says to a program of a release with the header that is there; "": nothing."""
    strict = ("-Werror", "-Wall", "-Wno-unused-variable", "-Wno-unused-const-variable", "-fsyntax-only")
    command = ("cc", "-std=c11", *strict, "-I", headers, PROGRAM)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr


class Library(unittest.TestCase):
    def test_it_exports_what_is_listed(self):
        names, patterns = set(), []
        for line in pathlib.Path(SYMBOLS).read_text().splitlines():
            if match := re.match(r' \(optional\|regex\)"(.+)" ', line):
                patterns.append(re.compile(match[1]))
            elif match := re.match(r" (\S+) ", line):
                names.add(match[1])
        exported = set()
        for line in said("nm", "-D", "--defined-only", LIBRARY).splitlines():
            name, _, version = line.split()[-1].replace("@@", "@").partition("@")
            exported.add(f"{name}@{version or ('Base' if name != 'GPUSLICE_0' else name)}")
        self.assertEqual(names - exported, set(), "listed, and not there")
        others = {name for name in exported - names if not any(pattern.search(name) for pattern in patterns)}
        self.assertEqual(others, set(), "there, and not listed")

    def test_programs_of_releases_agree_with_its_types(self):
        self.assertEqual(objections(HEADERS), "")
        public = re.findall(r"^ (gpuslice_\w+)@", pathlib.Path(SYMBOLS).read_text(), re.MULTILINE)
        self.assertTrue(public)
        self.assertEqual([name for name in public if f"= {name};" not in PROGRAM.read_text()], [], "not kept yet")
        (soname,) = re.findall(r"\(SONAME\).*\[(.+)\]", said("readelf", "-d", LIBRARY))
        self.assertEqual(soname, pathlib.Path(SYMBOLS).read_text().split()[0])

    def test_they_would_not_agree_with_others(self):
        """Each of these changes of the header breaks programs that nobody compiles again."""
        text = pathlib.Path(HEADERS, "gpuslice/gpuslice.h").read_text()
        for old, new in {
            "uint32_t capsm;": "uint64_t capsm;",
            "uint32_t demand; ": "uint32_t demanded; ",
            "int32_t priority; ": "uint32_t priority; ",
            "} gpuslice_grant;": "uint64_t more; } gpuslice_grant;",
            "GPUSLICE_ERROR_REFUSED = -3": "GPUSLICE_ERROR_REFUSED = -6",
            "typedef uint64_t gpuslice_request;": "typedef uint32_t gpuslice_request;",
            "int gpuslice_version(void);": "",
            "int gpuslice_slice(char* buffer, size_t size);": "int gpuslice_slice(char* buffer, unsigned size);",
            "int gpuslice_attach(const char* slice);": "long gpuslice_attach(const char* slice);",
        }.items():
            with self.subTest(new or f"without {old}"), tempfile.TemporaryDirectory() as headers:
                self.assertEqual(text.count(old), 1)
                other = pathlib.Path(headers, "gpuslice/gpuslice.h")
                other.parent.mkdir()
                other.write_text(text.replace(old, new))
                self.assertNotEqual(objections(headers), "")

    def test_old_systems_can_load_it(self):
        """ld.so refuses each program, /bin/true too, whose preloaded library wants a newer C library."""
        self.assertEqual(too_new(LIBRARY), [])
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said("readelf", "-d", LIBRARY)))
        self.assertEqual(needed - NEEDED, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
