#!/usr/bin/env python3
"""debian/rules configures what it builds as it is wanted now, whatever kept objects were configured for.

A project of two lines with our options stands in for gpuctl, and dh_auto_configure of our own for debhelper's."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
PROJECT = "project('stand-in', meson_version: '>=1.0')\n"
CONFIGURE = '#!/bin/sh\nshift\ncd "$OBJECTS" && exec meson setup "$SOURCE" --prefix=/usr "$@"\n'  # after "--"


class Rules(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(place.cleanup)
        self.source, self.objects = pathlib.Path(place.name, "source"), pathlib.Path(place.name, "objects")
        tools = pathlib.Path(place.name, "tools")
        for directory in (self.source / "debian", self.objects, tools):
            directory.mkdir(parents=True)
        (self.source / "meson.build").write_text(PROJECT)
        shutil.copy(ROOT / "meson_options.txt", self.source)
        shutil.copy(ROOT / "packaging/debian/rules", self.source / "debian")
        (tools / "dh_auto_configure").write_text(CONFIGURE)
        (tools / "dh_auto_configure").chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SOURCE": str(self.source),
            "OBJECTS": str(self.objects),
        }

    def configured(self, toolkit):
        """The options, by name, once `debian/rules` has configured."""
        for command in (
            ("make", "-s", "-f", "debian/rules", "override_dh_auto_configure", f"TOOLKIT={toolkit}"),
            ("meson", "introspect", "--buildoptions", self.objects),
        ):
            done = subprocess.run(
                command,
                cwd=self.source,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return {option["name"]: option["value"] for option in json.loads(done.stdout)}

    def test_what_is_wanted_later_is_built(self):
        first = self.configured("/first")
        self.assertEqual((first["slurm"], first["toolkit_root"], first["prefix"]), ("disabled", "/first", "/usr"))
        (self.source / "debian/gpuctl-slurm22.05.install").touch()  # scripts/package.sh, where there is libslurm-dev
        second = self.configured("/second")
        self.assertEqual((second["slurm"], second["toolkit_root"], second["tests"]), ("enabled", "/second", False))


if __name__ == "__main__":
    if absent := [tool for tool in ("make", "meson", "ninja") if shutil.which(tool) is None]:
        print(f"skipped: no {' and no '.join(absent)} here")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
