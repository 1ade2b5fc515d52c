#!/usr/bin/env python3
"""The completions for bash, zsh and fish say the same: completion_test.py GPUCTL. A shell that is absent is skipped."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "completion"
GPUCTL = pathlib.Path(sys.argv[1]).resolve()
# By what is typed, candidates of which each shell must have all.
TYPED = {
    "gpuctl cre": {"create-slice"},
    "gpuctl s": {"set", "save", "show", "status", "simulate"},
    "gpuctl create-slice x --reserve-mode ": {"strict", "active"},
    "gpuctl create-slice x --isolation ": {"auto", "shared", "isolated"},
    "gpuctl adv": {"advise"},
    "gpuctl advise --lat": {"--latency"},
    "gpuctl us": {"usage"},
    "gpuctl create-slice x --pers": {"--persist"},
    "gpuctl run --sc": {"--scope"},
    "gpuctl mo": {"mount", "move", "monitor"},
    "gpuctl k8s ": {"resourceslice"},
}
HELP = subprocess.run([GPUCTL, "--help"], capture_output=True, text=True, check=True).stdout
VERBS = set(re.findall(r"^  ([a-z]\S*)", HELP.split("\nVerbs:\n")[1].split("\n\n")[0], re.MULTILINE))
BASH = 'source "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _gpuctl; printf "%s\\n" "${COMPREPLY[@]}"'
# compadd and _files belong to zsh's completion system, which is not there without a terminal.
ZSH = """
compadd() { shift; print -l -- "$@" }
_files() { print files }
complete() { . $1 }
words=("${@:2}") CURRENT=$#words
complete $1
"""


class Completion(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        (self.place / "gpuctl").symlink_to(GPUCTL)
        for script in ("_gpuctl", "gpuctl.fish"):
            text = (SCRIPTS / f"{script}.in").read_text().replace("@BASH@", str(SCRIPTS / "gpuctl"))
            (self.place / script).write_text(text)

    def check(self, shell, command):
        if shutil.which(shell) is None:
            self.skipTest(f"no {shell} here")
        for typed, wanted in (TYPED | {"gpuctl ": VERBS}).items():
            done = subprocess.run(
                command(typed),
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PATH": f"{self.place}:{os.environ['PATH']}", "HOME": str(self.place)},
            )
            said = {line.split("\t")[0] for line in done.stdout.splitlines()}
            self.assertLessEqual(wanted, said, f"{typed}: {done.stdout}{done.stderr}")

    def test_bash(self):
        self.check("bash", lambda typed: ["bash", "-c", BASH, "bash", SCRIPTS / "gpuctl", *typed.split(" ")])

    def test_zsh(self):
        self.check("zsh", lambda typed: ["zsh", "-f", "-c", ZSH, "zsh", self.place / "_gpuctl", *typed.split(" ")])

    def test_fish(self):
        self.check(
            "fish", lambda typed: ["fish", "-N", "-c", f"source {self.place}/gpuctl.fish; complete -C '{typed}'"]
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
