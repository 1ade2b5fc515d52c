"""The developer's tools of a day: compute-sanitizer's four, ncu, nsys and cuda-gdb, each inside `gpuctl run` and around
it. What counts is what a tool says: the kernel that it saw, the errors that it found, how it ended."""

import dataclasses
import re

from compare import LONGEST, shown
from head import AT_FAULT, Program
from lab import toolkit_program

INSIDE, AROUND = "inside", "around"
CLEAN, PLANTED = "vector_add_tiny", "planted"
KERNELS = r"\b(?:write_past|read_too_early|read_unwritten|wait_apart|write_nowhere)\b"  # of the planted mistakes
SANITIZER_FINDS = (
    r"Invalid __\w+__ \w+ of size \d+ bytes|Uninitialized [^\n]*"
    r"|\b(?:Error|Warning): Race reported between \w+ access|Barrier error detected[^\n]*"
    r"|Target application [^\n]*|Device not supported[^\n]*|" + KERNELS
)
SANITIZER_SAYS = r"[A-Z]+ SUMMARY: [^\n]*|Program hit \w+|" + SANITIZER_FINDS
OUTPUT = re.compile(r"^(?:rounds|sums|planted|day:) .*$", re.MULTILINE)  # of the programs, and of day_matrix.py


@dataclasses.dataclass(frozen=True)
class Tool:
    name: str
    command: tuple  # what stands before the program
    says: str  # a pattern: all of its matches are what the tool says
    needed: str  # a pattern in what it says of a plain run, or nothing is known of it here
    source: str = CLEAN
    arguments: tuple = ()
    one_at_a_time: bool = False  # it has the GPU's counters, or a lock, for itself

    def path(self):
        return toolkit_program(self.command[0])


def sanitizer(name, tool, needed, *planted):
    # After a fault the tool counts each driver call that meets it, also those of the library's own threads.
    says = SANITIZER_FINDS if name.startswith(AT_FAULT) else SANITIZER_SAYS
    command = ("compute-sanitizer", "--target-processes", "all", "--error-exitcode", "9", "--tool", tool)
    return Tool(name, command, says, needed, PLANTED if planted else CLEAN, planted)


def debugger(name, needed, *planted):
    says = r"exited normally|exited with code \d+|CUDA_EXCEPTION_\d+[^.\n]*|received signal \w+|No stack|" + KERNELS
    command = ("cuda-gdb", "-batch", "-ex", "run", "-ex", "bt", "--args")
    return Tool(name, command, says, needed, PLANTED if planted else CLEAN, planted, one_at_a_time=True)


# Names that begin with `fault` end with a fault, so under MPS they run by themselves.
TOOLS = (
    sanitizer("memcheck", "memcheck", r"ERROR SUMMARY: 0 errors"),
    sanitizer("racecheck", "racecheck", r"RACECHECK SUMMARY: 0 hazards"),
    sanitizer("initcheck", "initcheck", r"ERROR SUMMARY: 0 errors"),
    sanitizer("synccheck", "synccheck", r"ERROR SUMMARY: 0 errors"),
    sanitizer("racecheck_planted", "racecheck", r"SUMMARY: [1-9]", "race"),
    sanitizer("initcheck_planted", "initcheck", r"Uninitialized ", "uninitialised"),
    sanitizer("fault_memcheck", "memcheck", r"Invalid __global__ write", "bounds"),
    sanitizer("fault_synccheck", "synccheck", r"Barrier error", "barrier"),
    Tool(
        "ncu",
        ("ncu", "-c", "1", "--clock-control", "none"),
        r'==PROF== Profiling "\w+"|No kernels were profiled|==ERROR== [^\n]*',
        r'Profiling "add"',
        one_at_a_time=True,
    ),
    Tool(
        "nsys",
        ("nsys", "profile", "--trace", "cuda", "--stats", "true", "--force-overwrite", "true", "--output", "report"),
        r"\badd\(const int \*|does not contain CUDA [^\n.]*",
        r"\badd\(",
        one_at_a_time=True,
    ),
    debugger("cuda_gdb", r"exited normally"),
    debugger("fault_cuda_gdb", r"CUDA_EXCEPTION", "address"),
)


@dataclasses.dataclass(frozen=True)
class ToolCell:
    """A tool inside or around, in place of a Cell of matrix.py."""

    tool: Tool
    place: str
    found: str  # the tool's path
    path: object  # of the program
    build: str

    def told_of_fewer(self):
        return self

    @property
    def program(self):
        return Program(self.tool.name, self.path, self.tool.name)

    @property
    def name(self):
        return f"{self.tool.name} {self.place}"

    @property
    def id(self):
        return f"{self.tool.name}.{self.place}.{self.build}"

    @property
    def turn(self):
        """What must not run beside another of that."""
        return self.tool.command[0] if self.tool.one_at_a_time else ""

    @property
    def before(self):
        return [self.found, *self.tool.command[1:]]

    @property
    def inner(self):
        return [str(self.path), *self.tool.arguments]

    @property
    def command(self):
        return [*self.before, *self.inner]

    def sliced(self, in_slice):
        return in_slice(self.command) if self.place == INSIDE else [*self.before, *in_slice(self.inner)]

    def said(self, outcome):
        """What the tool says, and what the program does, in no order: the tool writes beside the program."""
        text = f"{outcome.out}\n{outcome.err}"
        facts = {match[0].strip() for match in re.finditer(self.tool.says, text)} | set(OUTPUT.findall(text))
        return [outcome.status_text(), *sorted(facts)]

    def unsound(self, first, _):
        """Why a plain run says nothing of others, or None."""
        if first.ended != "by itself":
            return f"plain: {first.status_text()}"
        if any(re.search(self.tool.needed, fact) for fact in self.said(first)):
            return None
        last = (first.err.strip() or first.out.strip() or "nothing said").splitlines()[-1]
        return f"plain: {first.status_text()}: {last[:LONGEST]}"

    def difference(self, plain, outcome):
        ours, theirs = self.said(plain), self.said(outcome)
        if ours == theirs:
            return None
        missing = [shown(fact) for fact in ours if fact not in theirs]
        more = [shown(fact) for fact in theirs if fact not in ours]
        last = (outcome.err.strip() or outcome.out.strip() or "nothing said").splitlines()[-1]
        here = ", ".join(more) or "nothing else"
        return f"plain says {', '.join(missing) or 'no more'}; here {here}; last {shown(last)}"


def tool_cells(tools, paths, build):
    """The cells of the tools that are here, with the programs in `paths` by name; and of those that are not the name,
    and why."""
    cells, absent = [], []
    for tool in tools:
        found = tool.path()
        for place in (INSIDE, AROUND):
            if found is None:
                absent.append((f"{tool.name} {place}", f"no {tool.command[0]} here"))
            elif tool.source in paths:
                cells.append(ToolCell(tool, place, found, paths[tool.source], build))
            else:
                absent.append((f"{tool.name} {place}", "its program was not built"))
    return cells, absent
