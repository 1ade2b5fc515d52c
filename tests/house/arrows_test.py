#!/usr/bin/env python3
"""Includes go one way: a part of src/, and a room of a part, includes only what its Meson file names before it."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ROOMS = re.compile(r"foreach room : \[(.*?)\]", re.DOTALL)
# What a part may include beside itself and base: what architecture.md says.
MAY_INCLUDE = {
    "base": set(),
    "ptx": set(),
    "sched": set(),
    "ipc": set(),
    "softgpu": {"ptx"},
    "libgpuslice": {"ptx", "ipc"},
    "gpuslice-compile": {"ptx", "ipc", "libgpuslice"},
    "gpuctld": {"ipc", "sched"},
    "gpuctl": {"ptx", "ipc", "sched"},
    "gpuslice-nvcc": set(),
}
FOR_TESTS = {"testing"}  # rooms that only tests include
MOST_SOURCES = 25  # of a folder
SUITES = re.compile(r"softgpu_suites \+= \{'\w+': \[(.*?)\]", re.DOTALL)
SUITE = re.compile(r"^TEST(?:_F|_P)?\((\w+)", re.MULTILINE)
IN_MODES = {"LoadingApi"}  # run more than once: named in softgpu's own Meson file
NO_ROOMS = {"include"}  # what is installed


def rooms_of(part):
    """The rooms of a part in the order of the arrows; none where it has none."""
    found = ROOMS.search((SOURCE / part / "meson.build").read_text())
    return re.findall(r"'(\w+)'", found.group(1)) if found else []


def sources_in(folder):
    return [path for path in folder.rglob("*") if path.suffix in (".h", ".cc")]


class Arrows(unittest.TestCase):
    def test_parts_include_what_they_may(self):
        for path in sources_in(SOURCE):
            part = path.relative_to(SOURCE).parts[0]
            for included in INCLUDE.findall(path.read_text()):
                target = included.split("/")[0]
                if target == part or not (SOURCE / target).is_dir() or path.stem.endswith("_test"):
                    continue
                with self.subTest(file=str(path.relative_to(SOURCE)), includes=included):
                    self.assertIn(target, MAY_INCLUDE[part] | {"base"})

    def test_rooms_include_what_stands_before_them(self):
        parts = [part.name for part in SOURCE.iterdir() if (part / "meson.build").exists()]
        self.assertTrue(any(rooms_of(part) for part in parts))
        for part in parts:
            order = {room: number for number, room in enumerate(rooms_of(part))}
            for room, number in order.items():
                for path in sources_in(SOURCE / part / room):
                    for included in INCLUDE.findall(path.read_text()):
                        target = included.split("/")
                        if (
                            target[0] != part
                            or len(target) < 3
                            or target[1] in FOR_TESTS
                            and path.stem.endswith("_test")
                        ):
                            continue
                        with self.subTest(file=str(path.relative_to(SOURCE)), includes=included):
                            self.assertLessEqual(order.get(target[1], len(order)), number)

    def test_every_folder_of_a_part_with_rooms_is_a_room(self):
        for part in SOURCE.iterdir():
            if not (part / "meson.build").exists() or not rooms_of(part.name):
                continue
            folders = {folder.name for folder in part.iterdir() if folder.is_dir() and any(sources_in(folder))}
            self.assertEqual(folders - FOR_TESTS - NO_ROOMS, set(rooms_of(part.name)), part.name)

    def test_no_folder_is_too_full(self):
        """Rooms, and parts without rooms."""
        code, kernels, system_tests = (".h", ".cc"), (".h", ".cc", ".cu", ".cuh"), (".py",)
        parts = (
            (SOURCE, code),
            (ROOT / "kernels", kernels),
            (ROOT / "tests/system", system_tests),
            (ROOT / "tests/compat/programs", kernels),
        )
        for part, suffixes in parts:
            for folder in (part, *(path for path in part.rglob("*") if path.is_dir())):
                sources = [path for path in folder.iterdir() if path.suffix in suffixes]
                self.assertLessEqual(len(sources), MOST_SOURCES, folder.relative_to(ROOT))

    def test_every_suite_of_the_software_gpu_s_api_is_run(self):
        """They run one by one, so each is named."""
        found = 0
        for room in rooms_of("softgpu"):
            named = SUITES.search((SOURCE / "softgpu" / room / "meson.build").read_text())
            if not named:
                continue
            texts = [path.read_text() for path in sorted((SOURCE / "softgpu" / room).glob("*_test.cc"))]
            suites = {suite for text in texts for suite in SUITE.findall(text)}
            self.assertEqual(suites - IN_MODES, set(re.findall(r"'(\w+)'", named.group(1))), room)
            found += len(suites)
        self.assertGreater(found, 10)


if __name__ == "__main__":
    unittest.main()
