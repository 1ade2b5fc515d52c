#!/usr/bin/env python3
"""Without tests the product alone is set up: without_tests_test.py MESON SOURCE_ROOT TOOLKIT_ROOT."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PRODUCT = {"gpuctl", "gpuctld", "gpuslice", "gpuslice-bench", "gpuslice-compile", "gpuslice-nvcc", "gpuslice-preload"}


class WithoutTests(unittest.TestCase):
    def linked(self, *options):
        """The programs and shared libraries that such a build would have."""
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            done = subprocess.run(
                [meson, "setup", scratch, root, "-Dtests=false", f"-Dtoolkit_root={toolkit}", *options],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
            targets = json.loads((pathlib.Path(scratch) / "meson-info/intro-targets.json").read_text())
        return {target["name"] for target in targets if target["type"] in ("executable", "shared library")}

    def test_what_is_built_by_default_is_the_product(self):
        self.assertEqual(self.linked(), PRODUCT)

    def test_the_software_gpu_is_built_beside_it_if_wanted(self):
        self.assertEqual(self.linked("-Dsoftgpu=enabled"), PRODUCT | {"cuda", "cudart"})


if __name__ == "__main__":
    meson, root, toolkit = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
