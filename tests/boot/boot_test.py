#!/usr/bin/env python3
"""gpuctl as it is installed, under a systemd that is booted for it: boot_test.py MESON BUILD. Skipped where that is not
possible (container.sh). The checks are in inside.py."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.system.harness import pages  # noqa: E402

SKIPPED = 77
LIMIT_S = 150


class Boot(unittest.TestCase):
    def test_the_checks_pass(self):
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            installed, results = pathlib.Path(scratch, "installed"), pathlib.Path(scratch, "results")
            results.mkdir()
            subprocess.run(
                [MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", installed],
                check=True,
                timeout=LIMIT_S,
            )
            for name in ("inside.py", "stands_in_for_mps.sh"):
                shutil.copy(HERE / name, results)
            (results / "commands").write_text(json.dumps(pages.run_by("boot")))
            done = subprocess.run(
                [HERE / "container.sh", installed, results, HERE / "checks.service"],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
            if done.returncode == SKIPPED:
                print(f"skipped: {done.stderr.strip()}")
                sys.exit(SKIPPED)
            said = "\n".join(path.read_text() for path in (results / "output", results / "status") if path.exists())
        self.assertTrue(said.endswith("success 0\n"), said + done.stderr)


if __name__ == "__main__":
    MESON, BUILD = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
