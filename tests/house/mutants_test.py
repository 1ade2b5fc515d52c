"""The patches of tests/mutants fit the sources, and say what they make wrong. Whether tests see it, run.py shows."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "tests/mutants").glob("*.patch"))


class Mutants(unittest.TestCase):
    def test_each_fits(self):
        self.assertGreater(len(PATCHES), 20)
        for file in PATCHES:
            command = ["patch", "-p1", "-s", "-N", "--dry-run", "-r", "-", "-i", file]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{file.name} does not fit the sources: {done.stdout}{done.stderr}")

    def test_each_says_what_is_wrong_and_which_test_sees_it(self):
        for file in PATCHES:
            self.assertRegex(file.read_text(), r"\A[A-Z][^\n]+\.\nCaught by: [\w-]+\n\n---", file.name)


if __name__ == "__main__":
    unittest.main()
