"""Each command of a page for users works as the page says. A block of a page has commands, which begin with `$ `; a
line that follows one begins as a line of its output does, up to the first number."""

import os
import pathlib
import re
import subprocess
import unittest

from tests.system.harness import instance, pages

ROOT = pathlib.Path(__file__).resolve().parents[3]


def blocks(text):
    """(command, lines that the page shows of its output)."""
    commands = []
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)  # files, not commands
    for line in re.findall(r"^    (.*)$", text, re.MULTILINE):
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
    return commands


def beginning(line):
    """Of a line of output: words and spaces up to the first number, or all."""
    return re.split(r"\d", " ".join(line.split()))[0]


class Pages(instance.SystemTest):
    def shell(self, commands, where=None):
        """All commands in one shell, as a reader types them. Returns the output of each, and its status."""
        self.assertTrue(commands)
        mark = "--- the next command ---"
        script = "set -m\n" + "".join(f"{command}\necho '{mark}' $?\n" for command, _ in commands)
        script = script.replace("/tmp/", f"{self.scratch}/")
        paths = [instance.GPUCTL.parent, instance.GPUCTLD.parent, instance.BENCH.parent]
        env = {**self.env, "PATH": ":".join([*map(str, paths), os.environ["PATH"]])}
        del env["GPUCTL_SOCKET"]
        process = subprocess.Popen(
            ["bash", "-c", script],
            env=env,
            cwd=where,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=instance.PATIENCE_S * 4)
        finally:
            # What a command that failed left there.
            subprocess.run(["pkill", "-KILL", "-s", str(process.pid)])
        pieces = re.split(rf"^{mark} (\d+)\n", out, flags=re.MULTILINE)
        self.assertEqual(len(pieces), 2 * len(commands) + 1, out)
        return list(zip(commands, pieces[::2], pieces[1::2], strict=False))

    def test_each_command_does_what_the_page_says(self):
        for page in dict.fromkeys(name for name, _ in pages.run_by("pages", "tutorial", "kubernetes")):
            for (command, shown), out, status in self.shell(blocks((ROOT / f"docs/{page}.md").read_text())):
                with self.subTest(page=page, command=command):
                    self.assertEqual(status, "0", out)
                    said = [" ".join(line.split()) for line in out.splitlines()]
                    for line in shown:
                        self.assertTrue(any(one.startswith(beginning(line)) for one in said), f"{line!r} in {out}")

    def test_a_tarball_is_tried_as_its_file_says(self):
        """What it unpacks are scripts here that start what was built, and the daemon takes the software GPU."""
        tree = self.scratch / "tree"
        for name, script in (
            ("bin/gpuctl", f'exec {instance.GPUCTL} "$@"'),
            ("sbin/gpuctld", f'exec {instance.GPUCTLD} --software-gpu "$@"'),
            ("bin/gpuslice-bench", f'exec {instance.BENCH} "$@"'),
        ):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(f"#!/bin/sh\n{script}\n")
            (tree / name).chmod(0o755)
        to_try = [command for _, command in pages.run_by("pages", "INSTALL")]
        ends = ["bin/gpuctl list", "kill %1", "wait"]
        commands = [(command, []) for command in to_try + ends]
        done = self.shell(commands, where=tree)
        for (command, _), out, status in done[:-1]:
            with self.subTest(command=command):
                self.assertEqual(status, "0", out)
        said = {command: out for (command, _), out, _ in done}
        self.assertRegex("".join(said.values()), r"(?m)^vectorAdd .*\n(?:.*\n)*5 results checked, 0 wrong")
        self.assertRegex(said["bin/gpuctl list"], r"(?m)^  batch +- +4 ")


class Reader(unittest.TestCase):
    def test_commands_and_their_output(self):
        self.assertEqual(blocks("x\n\n    $ a b\n    1 c\n\n    $ d\n"), [("a b", ["1 c"]), ("d", [])])
        self.assertEqual(blocks("    $ a\n```yaml\nx:\n    y: 1\n```\n    out\n"), [("a", ["out"])])
        self.assertEqual(beginning("up 1 s, 2"), "up ")


if __name__ == "__main__":
    instance.main()
