#!/usr/bin/env python3
"""What libgpuslice shows to programs and needs of a system: library_test.py LIBRARY SYMBOLS.

SYMBOLS is the list of the exported functions in the form of Debian's symbols files, which the package uses as well. A
function that goes or changes there needs another soname; a new one needs a line."""

import re
import subprocess
import sys
import unittest

LIBRARY, SYMBOLS = sys.argv[1:3]
NEWEST_GLIBC = (2, 34)  # the oldest C library that must load it
NEEDED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


class Library(unittest.TestCase):
    def test_it_exports_what_is_listed(self):
        names, patterns = set(), []
        for line in open(SYMBOLS, encoding="utf-8"):
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

    def test_old_systems_can_load_it(self):
        """ld.so refuses each program, /bin/true too, whose preloaded library wants a newer C library."""
        wanted = re.findall(r"\(GLIBC_([\d.]+)\)\s+(\S+)", said("objdump", "-T", LIBRARY))
        self.assertTrue(wanted)
        newer = [name for version, name in wanted if tuple(map(int, version.split("."))) > NEWEST_GLIBC]
        self.assertEqual(newer, [])
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said("readelf", "-d", LIBRARY)))
        self.assertEqual(needed - NEEDED, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
