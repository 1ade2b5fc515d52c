"""The commands that README, the pages of users, the manual and the tarball's file show, and which test runs each.

A block is what a page has indented, or a manual page as literal text. With lines that begin with `$ ` these are its
commands, and others what they print. Else each line is a command, and what is indented further is what it prints.
Blocks that are something else are named in NO_COMMANDS.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
OF_DEVELOPERS = {"architecture", "engineering-notes", "testing", "papers", "corun", "benchmarks"}
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  # files
BLOCK = re.compile(r"(?:^ {4}.*\n(?:\n+(?= {4}))?)+", re.MULTILINE)
LITERAL = re.compile(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$|((?:^\.Dl .*\n)+)", re.MULTILINE)

# (pages, how their commands begin, the test that runs them). The first that fits counts.
TESTS = (
    ("README", "scripts/demo.sh", "demo"),
    ("README|tutorial", "sudo apt install|PATH=", "package"),
    ("tutorial|kubernetes", "", "pages"),
    ("INSTALL", "mkdir|export|sbin/|until|bin/", "pages"),
    ("INSTALL", "tar|mv", "package"),
    ("INSTALL", "systemd-sysusers|systemctl|rm", "boot"),
    ("containers", "sudo systemctl", "boot"),
    ("containers", "(?:sudo )?(?:gpuctl|podman) ", "containers"),
    ("slurm", "sbatch|srun|scancel|scontrol", "slurm"),
    ("events", "journalctl", "boot"),
    ("metrics|gpuctl-exporter.1", "gpuctl-exporter", "metrics"),
    ("gpuctl-mount.1", "gpuctl-mount|mkdir|echo|cat", "mount"),
    ("gpuslice-nvcc.1", "gpuslice-nvcc|GPUCTL_SLICE=", "gpuslice_nvcc"),
    ("io.gpuctl.7", "varlinkctl", "package"),
    ("README|troubleshooting|latency|policies|events|gpuctl.1|gpuslice-bench.1", "gpuctl ", "commands"),
)
# (page, how it begins): why no test runs it.
NOT_RUN = {
    ("README", "scripts/test.sh"): "it is what runs all tests",
    ("README", "scripts/package.sh"): "it makes what the test of packages starts with, by --test",
    ("latency", "sleep"): "it only waits",
    ("containers", "sudo nvidia-ctk"): "it needs NVIDIA's driver",
}
# (page, how the block begins): what it is.
NO_COMMANDS = {
    ("README", "GPU 0  NVIDIA H200"): "output",
    ("README", "time-slicing"): "results",
    ("slurm", "Name=gpu"): "files",
    ("slurm", "required gpuctl.so"): "a file",
    ("slurm", "#!/bin/sh"): "a file, which the test slurm submits",
    ("metrics", "rule_files:"): "a file, which the test metrics gives to Prometheus",
    ("events", "2026-"): "output",
    ("latency", "others need not yield"): "output",
    ("latency", "goes before the others"): "output",
    ("latency", "#define GPUSLICE_OPTIONAL"): "a piece of a program",
    ("latency", "import gpuctl"): "a piece of a program",
    ("io.gpuctl.7", '{"method"'): "a message",
    ("io.gpuctl.7", '{"parameters"'): "messages",
    ("io.gpuctl.7", "import json, socket"): "a program, which the test commands runs",
    ("gpuctl.toml.5", '[slice."ls"]'): "a file, which the test commands reads",
    ("gpuctl-exporter.1", "GPUCTL_EXPORTER_OPTIONS="): "a file, whose form the test package uses",
}


def sources():
    """Name and text of each page; a page of the manual as a page has it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "packaging/INSTALL"]
    for page in pages:
        if page.stem not in OF_DEVELOPERS:
            yield page.stem, page.read_text()
    for page in sorted((ROOT / "man").iterdir()):
        if re.fullmatch(r"\.[1-8]", page.suffix):
            yield page.name, manual(page.read_text())


def manual(text):
    """The examples of a manual page, as a page has them."""
    found = [literal or re.sub(r"^\.Dl ", "", lines, flags=re.MULTILINE) for literal, lines in LITERAL.findall(text)]
    return "\n.\n".join(re.sub("^(?=.)", "    ", one, flags=re.MULTILINE) for one in found).replace("\\e", "\\")


def blocks(text):
    """Without their indentation."""
    return [re.sub("^ {4}", "", block, flags=re.MULTILINE) for block in BLOCK.findall(FENCE.sub("", text) + "\n")]


def is_no_command(name, block):
    return any(page == name and block.startswith(beginning) for page, beginning in NO_COMMANDS)


def commands_of(name, text):
    """Each in one line, in the order of the page."""
    found = []
    for block in blocks(text):
        if is_no_command(name, block):
            continue
        whole = re.sub(r"(?:\\|(?<=\|))\n +", " ", block)
        session = re.search(r"^\$ ", whole, re.MULTILINE)
        found += re.findall(r"^\$ (.*)" if session else r"^(\S.*)", whole, re.MULTILINE)
    return [re.sub(r" +", " ", re.sub(r"(^|\s)#(?!!).*", "", command)).strip() for command in found]


def reason_not_to_run(name, command):
    return next((why for (page, begins), why in NOT_RUN.items() if page == name and command.startswith(begins)), None)


def entry_of(name, command):
    """Of TESTS; None if there is none, or a reason not to run it."""
    fit = (one for one in TESTS if re.fullmatch(one[0], name) and re.match(one[1], command))
    return None if reason_not_to_run(name, command) else next(fit, None)


def run_by(test, *pages):
    """(page, command) of all that the test has to run; of these pages, if any are named."""
    return [
        (name, command)
        for name, text in sources()
        if not pages or name in pages
        for command in commands_of(name, text)
        if (entry_of(name, command) or ())[-1:] == (test,)
    ]


def block(name, beginning):
    """The block of NO_COMMANDS that begins so."""
    text = dict(sources())[name]
    (found,) = [one for one in blocks(text) if one.startswith(beginning)]
    return found
