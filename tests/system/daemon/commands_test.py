"""Each command of gpuctl that README, the pages, the manual and the help of a verb show is taken, beside two slices
and a program. A word such as PID stands for what is there; a program that the page does not have is a script that ends
at once. harness/pages.py says which commands other tests run."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from tests.system.harness import instance, pages

ROOT = pathlib.Path(__file__).resolve().parents[3]
INDENTED = re.compile(r"^ {4}(?:\$ )?(gpuctl [a-z][a-z0-9-]*(?: [^>].*)?)$", re.MULTILINE)
WITHIN = re.compile(r"`(gpuctl [^`]+)`")
# Pages whose slices are not those of others have no commands here.
IN_SENTENCES = [
    (name, text) for name, text in pages.sources() if name not in {"tutorial", "kubernetes", "containers", "slurm"}
]
SCRIPTS = ("server", "a.out", "program", "compute-sanitizer", "gpuctl-mount")
ARE_WHOLE = ("top", "doctor", "list", "status", "events")  # verbs that need no more words


def words_of(command):
    """What comes before a pipe, and that."""
    words = shlex.split(command, comments=True)
    end = next((i for i, word in enumerate(words) if word in ("|", "&", ">")), len(words))
    return words[:end], words[end + 1 :] if words[end : end + 1] == ["|"] else []


def commands(text):
    """Of a text: the words of each command, in its order. One that is only named has two words."""
    found = []
    for command in INDENTED.findall(text) + WITHIN.findall(text):
        words, _ = words_of(command)
        if words not in found:
            found.append(words)
    return found


class Commands(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.env["SOFTGPU_SMS"] = "64"  # the pages have a real GPU in mind
        self.start_daemon()
        for name in SCRIPTS:
            (self.scratch / name).write_text("#!/bin/sh\n")
            (self.scratch / name).chmod(0o755)
        launches = [str(instance.BENCH), "run", "vectorAdd", "--count", "3"]
        (self.scratch / "train.py").write_text(f"import os\nos.execv({launches[0]!r}, {launches!r})\n")
        (self.scratch / "slices.toml").write_text("[slice.batch]\nmax = 4\n")
        self.env["PATH"] = f"{self.scratch}:{instance.GPUCTL.parent}:{instance.BENCH.parent}:{os.environ['PATH']}"
        self.bench = None

    def pid(self):
        """Of a program in slice batch."""
        if self.bench is None or not self.usage("batch", self.bench.pid):  # one that was killed may not have ended yet
            self.bench = self.start_bench("batch", "work", "--blocks", 8, "--seconds", 600)
            instance.wait_until(lambda: self.usage("batch", self.bench.pid), "the program to be there")
        return self.bench.pid

    def prepare(self, words):
        """The slices of the pages are there, but for the one that is to be made."""
        made = words[2] if words[1] == "create-slice" else ""
        if made == "batch":
            self.gpuctl("kill", made)
            instance.wait_until(lambda: not self.clients(made), "its programs to be gone")
        there = {one["path"] for one in self.call("ListSlices")["slices"]}
        if made in there:
            self.gpuctl("delete-slice", made)
        for name in {"ls", "batch"} - there - {made}:
            self.gpuctl("create-slice", name)

    def as_here(self, words):
        """The command with what is here in the place of what the page means, and with an end."""
        verb, *rest = words[1:]
        meant = {
            **dict.fromkeys(("PID", "4711"), self.pid() if words[2:] and verb != "create-slice" else ""),
            **dict.fromkeys(("SLICE", "NAME", "a"), "batch"),
            **dict.fromkeys(("60", "10", "20"), "1"),
            **dict.fromkeys(("FILE", "fleet.toml"), ROOT / "tests/workloads/fleet.toml"),
            "PROGRAM": "true",
            "policy=NAME": "policy=share",
            "alice": "root",
            "alice:ml": "0:0",
            "/run/cdi/gpuctl.json": self.scratch / "devices.json",
            **dict.fromkeys(("examples/serve.py", "examples/train.py"), "train.py"),
        }
        if verb == "rewrite":
            meant |= dict.fromkeys(("FILE", "./a.out", "./server"), instance.CUDA_PROGRAMS / "vector_add.fatbin")
        if verb == "monitor":
            meant["FILE"] = self.scratch / "recorded.toml"
        rest = [str(meant.get(word, word)) for word in rest if word != "--follow"]
        if verb == "top" and "--once" not in rest:
            rest.append("--once")
        if verb == "monitor" and "--seconds" not in rest:
            rest += ["--seconds", "1"]
        if "--pressure" in rest:
            rest.append("--help")  # it has no end
        if verb == "save":
            rest += ["--config", str(self.scratch / "gpuctl.toml")]
        return ["gpuctl", verb, *rest]

    def check(self, words, pipe=()):
        if len(words) == 2 and words[1] not in ARE_WHOLE:
            words = [*words, "--help"]
        self.prepare(words)
        command = shlex.join(self.as_here(words)) + (f" | {shlex.join(pipe)}" if pipe else "")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env=self.env,
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=instance.PATIENCE_S * instance.SLOWER,
        )
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")

    def check_all(self, source, text):
        found = commands(text)
        for words in found:
            with self.subTest(source, command=" ".join(words)):
                self.check(words)
        return found

    def test_of_pages_and_the_manual(self):
        for page, command in pages.run_by("commands"):
            with self.subTest(page, command=command):
                words, pipe = words_of(command)
                if pipe and shutil.which(pipe[0]) is None:
                    self.skipTest(f"no {pipe[0]} here")
                self.check(words, pipe)

    def test_of_sentences_in_pages(self):
        found = [self.check_all(name, re.sub("^ {4}.*\n", "", text, flags=re.MULTILINE)) for name, text in IN_SENTENCES]
        self.assertGreater(sum(map(len, found)), 40)

    def test_the_program_of_the_manual_lists_slices(self):
        program = pages.block("io.gpuctl.7", "import json").replace("/run/gpuctld/io.gpuctl", str(self.socket))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("/ 64\n", ""))

    def test_gpuctld_reads_the_file_of_the_manual(self):
        text = re.sub('"(inference|research)"', "1", pages.block("gpuctl.toml.5", "[slice"))
        (self.scratch / "example.toml").write_text(text)
        done = subprocess.run(
            [instance.GPUCTLD, "--check-config", "--config", self.scratch / "example.toml"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_of_the_help(self):
        verbs = re.findall(r"^  ([a-z0-9][a-z0-9-]*)  ", self.gpuctl("--help").stdout, re.MULTILINE)
        self.assertGreater(len(verbs), 20)
        for verb in ["--help", *verbs]:
            text = self.gpuctl(*([verb] if verb == "--help" else [verb, "--help"])).stdout
            examples = re.sub("^  (gpuctl .*?)(?:   .*)?$", r"    \1", text, flags=re.MULTILINE)
            with self.subTest(verb):
                self.assertTrue(self.check_all(verb, examples))


class Reader(unittest.TestCase):
    def test_commands(self):
        text = (
            "x `gpuctl save` and `gpuctl show a`\n\n    gpuctl top  # it\n    $ gpuctl run ./x &\n    gpuctl -> ipc\n"
        )
        self.assertEqual(
            commands(text),
            [["gpuctl", word, *rest] for word, *rest in (["top"], ["run", "./x"], ["save"], ["show", "a"])],
        )


if __name__ == "__main__":
    instance.main()
