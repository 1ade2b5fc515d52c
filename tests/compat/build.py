"""Compiles the programs of the suite, many at once: an object for each set of compile options, and a program for each
build.

What is there already is kept if the commands, the compiler and all sources it was made of are the same; so is a compile
error."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from execute import ending
from head import BUILDS

ERROR = re.compile(r"\berror\b|\bfatal\b|undefined reference", re.IGNORECASE)
COMPILE_LIMIT_S = 300
SOFTWARE_ARCH = "90"
COMMON = pathlib.Path(__file__).resolve().parent / "programs/common"  # headers of several rooms


@dataclasses.dataclass(frozen=True)
class Built:
    path: pathlib.Path
    error: str = ""  # the first line of what the compiler said, if it failed
    seconds: float = 0


def find_nvcc():
    """nvcc of NVCC, of PATH, or of where the toolkit usually is; None without one."""
    found = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return pathlib.Path(found).resolve() if pathlib.Path(found).exists() else None


def first_error(text):
    """The line of a compiler's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if ERROR.search(line)), lines[-1] if lines else "no output")


def code_options(build, arch, software=False):
    """Which code a build holds."""
    if software or build == "ptx":
        return ["-gencode", f"arch=compute_{arch},code=compute_{arch}"]
    if build == "cubin":
        return ["-gencode", f"arch=compute_{arch},code=sm_{arch}"]
    return ["-gencode", f"arch=compute_{arch},code=[sm_{arch},compute_{arch}]"] + (
        ["-rdc=true"] if build == "rdc" else []
    )


class Builder:
    def __init__(self, directory, gpu_arch, software=False, nvcc=None):
        self.nvcc = nvcc or find_nvcc()
        self.software = software
        self.gpu_arch = SOFTWARE_ARCH if software else gpu_arch
        self.directory = pathlib.Path(directory) / ("software" if software else f"sm_{self.gpu_arch}")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.version = hashlib.sha256(
            str(self.nvcc.stat().st_size).encode()
            + subprocess.run([self.nvcc, "--version"], capture_output=True, check=True, timeout=60).stdout
        ).hexdigest()

    def builds_of(self, program, wanted):
        """The software GPU runs the shared runtime alone."""
        available = ("shared",) if self.software else program.builds
        return [build for build in BUILDS if build in wanted and build in available]

    def path_of(self, program, build):
        return self.directory / f"{program.name}.{build}"

    def compile_command(self, program, build, to):
        arch = program.arch or self.gpu_arch
        return [
            str(self.nvcc),
            "-O2",
            *code_options(build, arch, self.software),
            *program.flags,
            f"-I{COMMON}",
            "-MMD",
            "-MF",
            f"{to}.d",
            "-c",
            "-o",
            str(to),
            str(program.path),
        ]

    def link_command(self, program, build, what, to):
        arch = program.arch or self.gpu_arch
        runtime = ["-cudart", "shared"] if build == "shared" else []
        # The toolkit's libraries, behind LD_LIBRARY_PATH.
        libraries = self.nvcc.parent.parent / "lib64"
        where = (
            []
            if self.software
            else ["-Xlinker", "--enable-new-dtags", "-Xlinker", "-rpath", "-Xlinker", str(libraries)]
        )
        return [
            str(self.nvcc),
            "-O2",
            *code_options(build, arch, self.software),
            *program.flags,
            *runtime,
            *where,
            "-o",
            str(to),
            str(what),
            *(f"-l{name}" for name in program.libs),
        ]

    def make_all(self, programs, wanted, jobs, deadline=None):
        """{(name, build): Built}; those for which there was no time are absent."""
        tasks = {}
        for program in programs:
            for build in self.builds_of(program, wanted):
                options = tuple(code_options(build, program.arch or self.gpu_arch, self.software))
                tasks.setdefault((program, options), []).append(build)
        made = {}

        def make(task):
            (program, _), builds = task
            if ending() or (deadline and deadline.passed()):
                return
            for build, built in self.make(program, builds):
                made[program.name, build] = built

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for future in [pool.submit(make, task) for task in tasks.items()]:
                future.result()
        return made

    def make(self, program, builds):
        """Builds that differ in how they are linked alone."""
        form = builds[0] if builds[0] in ("ptx", "cubin", "rdc") else "both"
        compiled = self.directory / f"{program.name}.{form}.o"
        error, sources = None, []
        for build in builds:
            to = self.path_of(program, build)
            commands = [self.compile_command(program, form, compiled), self.link_command(program, build, compiled, to)]
            stamp = to.with_suffix(f".{build}.json")
            known = self.known(stamp, commands)
            if known is not None and (known or to.exists()):
                yield build, Built(to, known)
                continue
            if error is None:
                error = run_compiler(commands[0])
                sources = [program.path, *self.dependencies(pathlib.Path(f"{compiled}.d"))]
            failed = error or run_compiler(commands[1])
            self.note(stamp, commands, failed, sources)
            yield build, Built(to, failed)
        compiled.unlink(missing_ok=True)

    def known(self, stamp, commands):
        """The error of the last time ("" for none), or None if what was made then is out of date."""
        try:
            noted = json.loads(stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        same = noted["commands"] == commands and noted["compiler"] == self.version
        return noted["error"] if same and all(content(path) == was for path, was in noted["sources"].items()) else None

    def dependencies(self, depfile):
        """The sources that a depfile names, but for the toolkit's; none if it was not written."""
        try:
            text = depfile.read_text(encoding="utf-8")
        except OSError:
            return []
        depfile.unlink()
        toolkit = self.nvcc.parent.parent
        named = {pathlib.Path(path).resolve() for path in text.replace("\\\n", " ").partition(": ")[2].split()}
        return sorted(path for path in named if toolkit not in path.parents)

    def note(self, stamp, commands, error, sources):
        noted = {
            "commands": commands,
            "compiler": self.version,
            "error": error,
            "sources": {str(path): content(path) for path in sources},
        }
        stamp.write_text(json.dumps(noted, indent=1), encoding="utf-8")


def run_compiler(command):
    """ "" or the first error."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMPILE_LIMIT_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"still compiling after {COMPILE_LIMIT_S} s"
    return "" if done.returncode == 0 else first_error(done.stderr + done.stdout)


def content(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
