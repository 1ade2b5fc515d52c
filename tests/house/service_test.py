#!/usr/bin/env python3
"""The unit files, as systemd reads them: service_test.py UNIT SOCKET GPUCTLD. Skipped without systemd-analyze."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

UNIT, SOCKET, GPUCTLD = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
SKIPPED = 77
MOST_EXPOSED = 15  # tenths: the score of systemd-analyze security


def analyze(*arguments):
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


class Service(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.unit = pathlib.Path(place.name) / "gpuctld.service"
        # The daemon is where it was built, not where it will be installed.
        self.text = re.sub(r"/\S*/gpuctld\b(?= |$)", str(GPUCTLD), UNIT.read_text(), flags=re.MULTILINE)
        self.unit.write_text(self.text)
        self.socket = pathlib.Path(place.name) / "gpuctld.socket"
        shutil.copy(SOCKET, self.socket)

    def test_verify_is_clean(self):
        done = analyze("verify", "--man=no", self.unit, self.socket)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_verify_sees_mistakes(self):
        self.unit.write_text(self.text.replace("MemoryMax=", "MemoryMost="))
        self.assertIn("MemoryMost", analyze("verify", "--man=no", self.unit).stderr)

    def test_little_is_exposed(self):
        done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", self.unit)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotEqual(analyze("security", "--offline=true", "--threshold=1", self.unit).returncode, 0)

    def test_budgets(self):
        for budget in ("MemoryMax=", "TasksMax=", "LogRateLimitBurst=", "LimitNOFILE="):
            self.assertRegex(self.text, rf"(?m)^{budget}\d")

    def test_a_reload_checks_first(self):
        reloads = re.findall(r"^ExecReload=(.*)$", self.text, re.MULTILINE)
        self.assertEqual(reloads[0], f"{GPUCTLD} --check-config")


if __name__ == "__main__":
    if not shutil.which("systemd-analyze"):
        print("skipped: no systemd-analyze here")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
