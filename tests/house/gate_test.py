#!/usr/bin/env python3
"""What holds for the form of the sources: gate_test.py CHECK [BUILD_DIR] [--all]. `sizes` only says what is large.

Ends with 77, which Meson counts as skipped, where the check's tool is missing or the sources are no git checkout.
scripts/bootstrap.sh installs the tools. --all: tidy looks at every source instead of those that changed."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
COLUMNS = 120
LONGEST_FILE = 400
MOST_SOURCES = 25  # of a folder
FORMATTED = ("*.cc", "*.h", "*.cu", "*.cuh", "*.c")
EVIDENCE = "bench/results/"  # kept as it was when it was used
UNITY_INCLUDE = re.compile(r'^#include\s*[<"](.+)[>"]$', re.MULTILINE)
TIDY_AT_MOST = 6  # sources: one takes some seconds


class Skip(Exception):
    pass


def git(*arguments):
    done = subprocess.run(("git", "-C", ROOT, *arguments), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"no git checkout: {done.stderr.strip()}")
    return done.stdout.splitlines()


def sources(*patterns):
    return [
        name for name in git("ls-files", "--", *patterns) if not name.startswith(EVIDENCE) and (ROOT / name).exists()
    ]


def tool(name, version=None):
    """The tool's path. Of some tools each version says something else."""
    path = shutil.which(name) or shutil.which(name, path=str(ROOT / "build" / "tools" / "bin"))
    if path is None:
        raise Skip(f"no {name} here")
    if version:
        said = subprocess.run((path, "--version"), capture_output=True, text=True, check=True).stdout
        if f" {version}" not in said:
            raise Skip(f"{name} is not version {version}: {said.strip()}")
    return path


def run(*command):
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def check_format():
    return run(tool("clang-format", "14."), "--dry-run", "--Werror", *sources(*FORMATTED))


def check_tidy(build_dir, everything):
    path = tool("clang-tidy")
    built = sources_built(pathlib.Path(build_dir))
    if everything:
        names = sources("src/*.cc", "softgpu/*.cc")
    else:
        changed = set(git("diff", "--name-only", "HEAD")) or last_commit()
        names = [name for name in sources("src/*.cc", "softgpu/*.cc") if name in changed]
    names = [name for name in names if str(ROOT / name) in built]
    if not everything and len(names) > TIDY_AT_MOST:
        print(f"{len(names)} sources changed; looking at {TIDY_AT_MOST} of them, --all looks at all")
        names = names[:TIDY_AT_MOST]
    # The header that was compiled beforehand is GCC's; clang reads its source.
    precompiled = f"--extra-arg-before=-I{ROOT / 'src/precompiled'}"
    with tempfile.TemporaryDirectory() as scratch:
        commands = [built[str(ROOT / name)] for name in names]
        (pathlib.Path(scratch) / "compile_commands.json").write_text(json.dumps(commands))
        return run(path, "--quiet", precompiled, "-p", scratch, *names) if names else 0


def sources_built(build_dir):
    """The command that would compile each source alone: the build compiles several as one (unity), and a source must
    include what it uses all the same."""
    commands = {}
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        directory, file = pathlib.Path(entry["directory"]), entry["file"]
        together = re.search(r"-unity\d+\.c(pp)?$", file)
        sources_of = UNITY_INCLUDE.findall((directory / file).read_text()) if together else [file]
        for name in sources_of:
            path = os.path.normpath(directory / name)
            command = entry["command"].replace(f" {file}", f" {path}")
            commands[path] = {"directory": str(directory), "file": path, "command": command}
    return commands


def last_commit():
    return set(git("diff-tree", "--no-commit-id", "--name-only", "-r", "HEAD"))


def check_python():
    ruff = tool("ruff")
    return run(ruff, "check", "--quiet", ".") or run(ruff, "format", "--quiet", "--check", ".")


def check_shell():
    return run(tool("shellcheck"), "-x", "-S", "warning", *sources("*.sh", ".ci/run"))


def check_manual():
    return run(tool("mandoc"), "-T", "lint", "-W", "warning", *sources("man/*.[1-8]"))


def report_sizes():
    """Says what is large, and fails on nothing: whoever reads it decides."""
    others = ("*.inc", "*.S", "*.py", "*.sh", "*.varlink", "*.ptx.in", "*meson.build", "*.map", "etc/*")
    folders = collections.Counter()
    for name in sources(*FORMATTED, *others):
        lines = (ROOT / name).read_text().splitlines()
        if len(lines) > LONGEST_FILE:
            print(f"{name}: {len(lines)} lines")
        wide = sum(len(line) > COLUMNS and not re.search(r"https?://", line) for line in lines)
        if wide:
            print(f"{name}: {wide} lines of more than {COLUMNS} columns")
        folders[str(pathlib.Path(name).parent)] += not name.endswith("meson.build")
    for folder, count in sorted(folders.items()):
        if count > MOST_SOURCES:
            print(f"{folder}/: {count} sources")
    return 0


def main():
    check, *rest = sys.argv[1:]
    try:
        if check == "tidy":
            return check_tidy(rest[0], "--all" in rest)
        return {
            "format": check_format,
            "manual": check_manual,
            "python": check_python,
            "shell": check_shell,
            "sizes": report_sizes,
        }[check]()
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(1 if (status := main()) not in (0, SKIPPED) else status)
