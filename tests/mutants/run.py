"""Shows that the ordinary tests see what is wrong with a daemon: run.py [--build DIR] [NAME...].

Each patch beside this file makes the daemon wrong in one way, and names the test that must fail then. It is applied to
the sources, what that test needs is built, the test is run, and the patch is taken back. Prints a line for each; exit
status 1 if one was not caught.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Mutant:
    def __init__(self, file):
        self.file = file
        self.name = file.stem
        self.test = re.search(r"^Caught by: (\S+)$", file.read_text(), re.MULTILINE)[1]
        self.sources = [ROOT / name for name in re.findall(r"^--- a/(\S+)$", file.read_text(), re.MULTILINE)]
        self.sound = {}

    def patch(self, *options):
        command = ["patch", "-p1", "-s", "-N", "-r", "-", "--no-backup-if-mismatch", *options, "-i", self.file]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.file.name} does not fit the sources: {done.stdout}{done.stderr}")

    def apply(self):
        self.sound = {source: source.read_text() for source in self.sources}
        self.patch()

    def take_back(self):
        for source, text in self.sound.items():
            source.write_text(text)


def tests_of(build):
    """What each test needs to be built."""
    command = ["meson", "introspect", "--tests", "--targets", build]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    files = {target["id"]: target["filename"] for target in told["targets"]}
    needs = {}
    for test in told["tests"]:
        names = [str(pathlib.Path(file).relative_to(build)) for id in test["depends"] for file in files[id]]
        runs_daemon = any("system" in suite for suite in test["suite"])
        needs[test["name"]] = names + (["src/gpuctld/gpuctld"] if runs_daemon else [])
    return needs


def failed(build, test, targets):
    """True or False: the test failed, or passed. None: it could not be built."""
    if subprocess.run(["ninja", "-C", build, *targets], capture_output=True).returncode != 0:
        return None
    run = ["meson", "test", "-C", build, "--no-rebuild", test]
    return subprocess.run(run, capture_output=True).returncode != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build directory (default: build)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a patch (default: all)")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    mutants = [Mutant(file) for file in sorted(HERE.glob("*.patch"))]
    if options.names:
        mutants = [mutant for mutant in mutants if mutant.name in options.names]
    needs = tests_of(build)
    for mutant in mutants:
        mutant.patch("--dry-run")
    sound = {}
    for test in sorted({mutant.test for mutant in mutants}):
        sound[test] = failed(build, test, needs[test]) is False
        if not sound[test]:
            print(f"{test} fails without any mutant", flush=True)
    caught = 0
    for mutant in mutants:
        mutant.apply()
        try:
            outcome = failed(build, mutant.test, needs[mutant.test])
        finally:
            mutant.take_back()
        words = {True: "caught", False: "NOT caught", None: "cannot be built"}[outcome]
        caught += bool(outcome) and sound[mutant.test]
        print(f"{mutant.name}: {words} by {mutant.test}", flush=True)
    for test in sound:
        subprocess.run(["ninja", "-C", build, *needs[test]], capture_output=True)
    print(f"{caught} of {len(mutants)} caught")
    sys.exit(caught != len(mutants))


if __name__ == "__main__":
    main()
