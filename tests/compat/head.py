"""What the head of a program of the compatibility suite says of it: lines `// key: value` (`# key: value` in Python),
of which the first is `compat:` and says the feature. The head ends at the first line of another kind."""

import dataclasses
import difflib
import fnmatch
import pathlib
import re
import shlex
import signal

BUILDS = ("both", "ptx", "cubin", "rdc", "shared")
PYTHON_BUILD = "python"
KEYS = (
    "compat",
    "libs",
    "flags",
    "builds",
    "arch",
    "args",
    "soft",
    "output",
    "needs",
    "modules",
    "ignore",
    "told",
    "signal",
    "attached",
)
MANY = ("args",)  # keys that may occur more than once
LINE = re.compile(r"(?://|#) ?([a-z]+):(?: (.*))?$")
AT_FAULT = ("fault", "exit")  # programs that may end with a status other than 0, and reach others under MPS


class HeadError(ValueError):
    """A head that cannot be understood; one line."""


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    path: pathlib.Path
    feature: str
    libs: tuple = ()
    flags: tuple = ()
    builds: tuple = BUILDS
    arch: str = ""  # empty: that of the GPU
    variants: tuple = ((),)  # the arguments of each
    soft: bool = False
    unordered: bool = False
    needs: tuple = ()
    modules: tuple = ()  # of Python
    ignore: str = ""  # a pattern in its output that does not count; its head says why
    told: str = ""  # a pattern in its output that follows the number of SMs it is told of; its head says why
    attached: int = 1  # how often its processes must have become clients of its slice, where that is looked at
    signalled: tuple = ()  # (line, number): its group gets that signal when it has printed that line

    @property
    def is_python(self):
        return self.path.suffix == ".py"

    @property
    def at_fault(self):
        """It ends in the middle of its work, or with an error: under MPS that may reach others."""
        return self.name.startswith(AT_FAULT)


def parse(path, text):
    """The program whose source is `text`."""
    lines = text.splitlines()
    first = 1 if lines and lines[0].startswith("#!") else 0
    said, prose = {}, False
    for number, line in enumerate(lines[first:], first + 1):
        match = LINE.match(line)
        if not line.startswith(("# ", "//")):
            break
        prose = prose or not match
        where = f"{path.name}:{number}"
        if prose and match and match[1] in KEYS:
            raise HeadError(f"{where}: {match[1]} stands below other lines, which end the head")
        if prose:
            continue
        key, value = match[1], (match[2] or "").strip()
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            raise HeadError(f"{where}: no such key: {key}" + (f"; is {near[0]} meant?" if near else ""))
        if key in said and key not in MANY:
            raise HeadError(f"{where}: {key} occurs twice")
        said.setdefault(key, []).append(value)
    if not lines or not said.get("compat") or not LINE.match(lines[first]) or LINE.match(lines[first])[1] != "compat":
        raise HeadError(f"{path.name}:{first + 1}: the first line is not 'compat: FEATURE'")
    return _program(path, said)


def _program(path, said):
    def one(key):
        return said.get(key, [""])[0]

    builds = tuple(one("builds").split()) or ((PYTHON_BUILD,) if path.suffix == ".py" else BUILDS)
    for build in builds:
        if build not in BUILDS + (PYTHON_BUILD,):
            raise HeadError(f"{path.name}: builds: no such build: {build}")
    if one("arch") and not re.fullmatch(r"\d+[af]?", one("arch")):
        raise HeadError(f"{path.name}: arch: not an architecture: {one('arch')}")
    for key, allowed in (("soft", ("", "yes", "no")), ("output", ("", "unordered", "ordered"))):
        if one(key) not in allowed:
            raise HeadError(f"{path.name}: {key}: one of {', '.join(filter(None, allowed))}")
    return Program(
        name=path.stem,
        path=path,
        feature=one("compat"),
        libs=tuple(one("libs").split()),
        flags=tuple(shlex.split(one("flags"))),
        builds=builds,
        arch=one("arch"),
        variants=tuple(tuple(shlex.split(line)) for line in said.get("args", [""])),
        soft=one("soft") == "yes",
        unordered=one("output") == "unordered",
        needs=tuple(one("needs").replace("|", " ").split()),
        modules=tuple(one("modules").split()),
        ignore=one("ignore"),
        told=one("told"),
        attached=_number(path, "attached", one("attached") or "1"),
        signalled=_signalled(path, one("signal")),
    )


def _number(path, key, text):
    if not text.isdecimal():
        raise HeadError(f"{path.name}: {key}: not a number: {text}")
    return int(text)


def _signalled(path, text):
    """Of `INT ready`."""
    if not text:
        return ()
    name, _, line = text.partition(" ")
    if not line or f"SIG{name}" not in signal.Signals.__members__:
        raise HeadError(f"{path.name}: signal: not a signal and a line: {text}")
    return line.strip(), signal.Signals[f"SIG{name}"]


def read_all(directory, suffix=".cu"):
    """The programs of a directory and its rooms by name, and one line for each whose head or name is wrong."""
    programs, errors, places = [], [], {}
    for path in sorted(pathlib.Path(directory).rglob(f"*{suffix}"), key=lambda path: (path.name, path)):
        try:
            if places.setdefault(path.name, path) != path:
                raise HeadError(f"{path.name} is in {places[path.name].parent.name} and in {path.parent.name}")
            programs.append(parse(path, path.read_text(encoding="utf-8")))
        except HeadError as error:
            errors.append((path.stem, str(error)))
    return programs, errors


def is_chosen(name, patterns):
    """Whether one of the patterns, divided by commas, matches the name as the shell does."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns.split(","))


def lacks(program, gpu_arch, gpus, without, software):
    """Why a program is not run here, or None."""
    if software and not program.soft and not program.is_python:
        return "not for the software GPU"
    if program.arch and program.arch.rstrip("af") != gpu_arch:
        return f"needs sm_{program.arch}, this GPU is sm_{gpu_arch}"
    if "peer" in program.needs and gpus < 2:
        return "needs two GPUs"
    for word in program.needs:
        if word in without:
            return f"needs {word}"
    return None
