#!/usr/bin/env python3
"""Includes go one way: a part (a folder of src/, or softgpu/), and a room of a part, includes only what its Meson file
names before it. No rooms include each other, nor do a room and a file beside the rooms."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By name, the folder of each part.
PARTS = {path.name: path for path in (*(ROOT / "src").iterdir(), ROOT / "softgpu") if (path / "meson.build").exists()}
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
    "slicefile": {"sched"},
    "gpuctld": {"ipc", "sched", "slicefile"},
    "gpuctl": {"ptx", "ipc", "sched", "slicefile"},
    "gpuslice-nvcc": set(),
    "slurm": {"ipc", "gpuctl"},
}
KNOWS_SOFTWARE_GPU = re.compile(r"\bGpu::software\b|\b(gpu|device|devices_\[\w+\])\.software\b|is_software")
FOR_TESTS = {"testing"}  # rooms that only tests include
SUITES = re.compile(r"softgpu_suites \+= \{'\w+': \[(.*?)\]", re.DOTALL)
SUITE = re.compile(r"^TEST(?:_F|_P)?\((\w+)", re.MULTILINE)
IN_MODES = {"LoadingApi"}  # run more than once: named in softgpu's own Meson file
NO_ROOMS = {"include"}  # what is installed
# A header beside the rooms that passes fill in, while the source of that name calls them.
HEADER_APART = {"ptx/rewrite"}


def rooms_of(part):
    """The rooms of a part in the order of the arrows; none where it has none."""
    found = ROOMS.search((PARTS[part] / "meson.build").read_text())
    return re.findall(r"'(\w+)'", found.group(1)) if found else []


def sources_in(folder):
    return [path for path in folder.rglob("*") if path.suffix in (".h", ".cc")]


def sources_of_parts():
    """By name, as it is included, the path of each source."""
    return {str(path.relative_to(part.parent)): path for part in PARTS.values() for path in sources_in(part)}


def place_of(name):
    """A room, or a file beside the rooms, of a path, as it is included. A header and the source of its name are one."""
    path = pathlib.PurePosixPath(name)
    if len(path.parts) > 2:
        return "/".join(path.parts[:2]) + "/"
    stem = str(path.with_suffix(""))
    return stem + path.suffix if stem in HEADER_APART else stem


def includes_of(files):
    """By place, the places that its files include, of {path as it is included: text}."""
    includes = {}
    for name, text in files.items():
        own = includes.setdefault(place_of(name), set())
        own |= {place_of(included) for included in INCLUDE.findall(text) if included in files}
        own.discard(place_of(name))
    return includes


def round_trips(includes):
    """What includes itself by way of others: a list of places for each, the way there."""
    found, done = [], set()

    def visit(place, way):
        if place in way:
            found.append([*way[way.index(place) :], place])
        elif place not in done:
            for other in sorted(includes.get(place, ())):
                visit(other, [*way, place])
            done.add(place)

    for place in sorted(includes):
        visit(place, [])
    return found


class Arrows(unittest.TestCase):
    def test_parts_include_what_they_may(self):
        for name, path in sources_of_parts().items():
            part = name.split("/")[0]
            for included in INCLUDE.findall(path.read_text()):
                target = included.split("/")[0]
                if target == part or target not in PARTS or path.stem.endswith("_test"):
                    continue
                with self.subTest(file=name, includes=included):
                    self.assertIn(target, MAY_INCLUDE[part] | {"base"})

    def test_rooms_include_what_stands_before_them(self):
        self.assertTrue(any(rooms_of(part) for part in PARTS))
        for part, folder in PARTS.items():
            order = {room: number for number, room in enumerate(rooms_of(part))}
            for room, number in order.items():
                for path in sources_in(folder / room):
                    for included in INCLUDE.findall(path.read_text()):
                        target = included.split("/")
                        if (
                            target[0] != part
                            or len(target) < 3
                            or target[1] in FOR_TESTS
                            and path.stem.endswith("_test")
                        ):
                            continue
                        with self.subTest(file=str(path.relative_to(ROOT)), includes=included):
                            self.assertLessEqual(order.get(target[1], len(order)), number)

    def test_every_folder_of_a_part_with_rooms_is_a_room(self):
        for name, part in PARTS.items():
            if rooms_of(name):
                folders = {folder.name for folder in part.iterdir() if folder.is_dir() and any(sources_in(folder))}
                self.assertEqual(folders - FOR_TESTS - NO_ROOMS, set(rooms_of(name)), name)

    def test_no_two_rooms_include_each_other(self):
        """In parts whose Meson file names no order too, and with the files beside the rooms."""
        files = {
            name: path.read_text()
            for name, path in sources_of_parts().items()
            if not path.stem.endswith("_test") and path.parent.name not in FOR_TESTS
        }
        self.assertEqual(round_trips(includes_of(files)), [])

    def test_only_the_search_for_gpus_knows_the_software_gpu(self):
        """Others ask for what a GPU or its driver can do."""
        for name, path in sources_of_parts().items():
            parts = name.split("/")
            if parts[0] == "softgpu" or parts[:2] == ["gpuctld", "host"] or path.stem.endswith("_test"):
                continue
            with self.subTest(file=name):
                self.assertNotRegex(path.read_text(), KNOWS_SOFTWARE_GPU)

    def test_round_trips_are_found(self):
        files = {
            "part/a/one.h": '#include "part/b/two.h"\n',
            "part/b/two.h": "",
            "part/b/two.cc": '#include "part/beside.h"\n',
            "part/beside.h": "",
            "part/beside.cc": '#include "part/beside.h"\n#include "part/a/one.h"\n',
        }
        self.assertEqual(round_trips(includes_of(files)), [["part/a/", "part/b/", "part/beside", "part/a/"]])
        del files["part/beside.cc"]
        self.assertEqual(round_trips(includes_of(files)), [])

    def test_every_suite_of_the_software_gpu_s_api_is_run(self):
        """They run one by one, so each is named."""
        found = 0
        for room in rooms_of("softgpu"):
            named = SUITES.search((PARTS["softgpu"] / room / "meson.build").read_text())
            if not named:
                continue
            texts = [path.read_text() for path in sorted((PARTS["softgpu"] / room).glob("*_test.cc"))]
            suites = {suite for text in texts for suite in SUITE.findall(text)}
            self.assertEqual(suites - IN_MODES, set(re.findall(r"'(\w+)'", named.group(1))), room)
            found += len(suites)
        self.assertGreater(found, 10)


if __name__ == "__main__":
    unittest.main()
