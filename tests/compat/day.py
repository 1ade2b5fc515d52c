#!/usr/bin/env python3
"""The things of a day: programs as users of PyTorch, JAX, CuPy, Numba and CUDA start them (day/programs), and the tools
of developers (tools.py), do in a slice what they do plain.

Kinds of run: plain; in a slice with nothing set; below a max; beside a reserve of another slice with a busy program.
Prints each that differs, what was not judged and why, and at the end a table. Exit status 0: all that was judged is as
plain; 1: something is not; 2: it could not be begun; 77: nothing of it can run here."""

import argparse
import json
import os
import pathlib
import resource
import sys
import tempfile

from day_matrix import KINDS, DayCell, DayMatrix
from day_table import report
from execute import Deadline, end_on_signals, kill_all
from head import BUILDS, PYTHON_BUILD, is_chosen, read_all
from lab import MPS, SOFTWARE, TIME_SLICED, LabOfModes, gpus
from matrix import RIGHT, SKIPPED, WRONG, Row, empty
from run import built_cells, chosen
from table import all_right, document
from tools import TOOLS, tool_cells

from build import find_nvcc

HERE = pathlib.Path(__file__).resolve().parent
NOTHING_TO_RUN = 77
# Programs look at no network, do not take all processors each, and keep their warnings short.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "2",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TOKENIZERS_PARALLELISM": "false",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", "--build-dir", default="build", help="of gpuctl, or a packed copy (default: build)")
    parser.add_argument(
        "--modes",
        default=f"{TIME_SLICED},{MPS}",
        help=f"some of {TIME_SLICED},{MPS}, or {SOFTWARE} (default: %(default)s)",
    )
    parser.add_argument("--runs", default=",".join(KINDS), help="some of " + ",".join(KINDS) + "; plain is always run")
    parser.add_argument("--only", default="*", metavar="PATTERN,...", help="names of programs and tools, as in a shell")
    parser.add_argument("--limit-s", type=float, default=3600, help="skip what is left after so many seconds")
    parser.add_argument("--jobs", type=int, default=12, help="programs that run at the same time (default: 12)")
    parser.add_argument("--programs", help="a directory of programs, in place of those of a day")
    parser.add_argument("--without-tools", action="store_true", help="the programs alone")
    parser.add_argument("--json", metavar="FILE", help="all results")
    parser.add_argument(
        "--keep", metavar="DIR", help="for what failing runs printed (default: BUILD/compat/day-failed)"
    )
    options = parser.parse_args(arguments)
    options.modes, options.runs = options.modes.split(","), [kind for kind in KINDS if kind in options.runs.split(",")]
    for mode in options.modes:
        if mode not in (TIME_SLICED, MPS, SOFTWARE) or (mode == SOFTWARE and len(options.modes) > 1):
            parser.error(f"modes: {TIME_SLICED}, {MPS}, both, or {SOFTWARE}: {','.join(options.modes)}")
    options.software = SOFTWARE in options.modes
    options.build_dir = pathlib.Path(options.build).resolve()
    options.builds, options.without = ["shared" if options.software else BUILDS[0]], ""
    return options


def use_packed_libraries(build_dir):
    """A copy for another machine brings libraries that machines lack."""
    if (build_dir / "lib").is_dir():
        os.environ["LD_LIBRARY_PATH"] = with_path(build_dir / "lib", "LD_LIBRARY_PATH")


def with_path(directory, variable):
    """The paths of an environment variable, with one more in front."""
    return ":".join(filter(None, (str(directory), os.environ.get(variable))))


def read_programs(directory):
    """Those of a directory, or of a day: its own and those of frameworks/; one line for each that is wrong."""
    where = [(directory, ".py"), (directory, ".cu")]
    if directory is None:
        where = [(HERE / "day/programs", ".py"), (HERE / "day/programs", ".cu"), (HERE / "frameworks", "_program.py")]
    found = [read_all(*each) for each in where]
    return [program for programs, _ in found for program in programs], [
        error for _, errors in found for error in errors
    ]


def day_cells(options, arch, count, deadline):
    """The cells of what can run here, and a row for each thing of a day that cannot."""
    programs, rows = chosen(options, read_programs(options.programs), arch, count)
    cells = [
        DayCell(program, variant, PYTHON_BUILD, program.path)
        for program in programs
        if program.is_python
        for variant in range(len(program.variants))
    ]
    compiled, failed = compile_all(options, [program for program in programs if not program.is_python], arch, deadline)
    cells += [DayCell(cell.program, cell.variant, cell.build, cell.path) for cell in compiled]
    of_tools, absent = cells_of_tools(options, arch, deadline)
    rows += failed + absent
    for row in rows:
        row.run = ""  # of all kinds of run
    return cells + of_tools, rows


def compile_all(options, programs, arch, deadline):
    """The cells of CUDA programs, and a row for each that has none."""
    if find_nvcc() is None:
        return [], [Row("", "", program.name, "-", SKIPPED, "no nvcc here") for program in programs]
    cells, rows = built_cells(options, programs, arch, deadline)
    return cells, [row for row in rows if row.verdict != RIGHT]


def cells_of_tools(options, arch, deadline):
    tools = [] if options.without_tools else [tool for tool in TOOLS if is_chosen(tool.name, options.only)]
    wanted = {tool.source for tool in tools if tool.path()}
    sources = [
        program
        for directory in ("day/tools", "programs")
        for program in read_all(HERE / directory)[0]
        if program.name in wanted
    ]
    built, failed = compile_all(options, sources, arch, deadline)
    cells, absent = tool_cells(tools, {cell.program.name: cell.path for cell in built}, options.builds[0])
    return cells, failed + [Row("", "", name, "-", SKIPPED, reason) for name, reason in absent]


def main():
    options = parse_arguments()
    deadline = Deadline(options.limit_s)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_on_signals()
    use_packed_libraries(options.build_dir)
    gpu = ("90", 1, ["software GPU"]) if options.software else gpus()
    if gpu is None:
        print(f"day: no GPU here (nvidia-smi); --modes {SOFTWARE} takes the software GPU", file=sys.stderr)
        return 2
    arch, count, said = gpu
    cells, rows = day_cells(options, arch, count, deadline)
    names = list(dict.fromkeys([cell.name for cell in cells] + [row.program for row in rows]))
    kept = empty(options.keep or options.build_dir / "compat/day-failed")
    if cells:
        rows += run_all(options, cells, deadline, kept)
    print("\n".join(report(rows, names, options.modes, options.runs)) if names else "no programs", flush=True)
    if options.json:
        about = {"gpu": said, "arch": arch, "runs": options.runs, "modes": options.modes, "jobs": options.jobs}
        pathlib.Path(options.json).write_text(json.dumps(document(rows, about), indent=1), encoding="utf-8")
    if not any(row.verdict in (RIGHT, WRONG) for row in rows):
        return NOTHING_TO_RUN
    return 0 if all_right(rows) else 1


def run_all(options, cells, deadline, kept):
    with tempfile.TemporaryDirectory(prefix="day.", ignore_cleanup_errors=True) as scratch:
        results = options.build_dir / "compat/day-results"
        lab = LabOfModes(options.build_dir, results, pathlib.Path(scratch), options.software)
        lab.env.update(ENVIRONMENT, PYTHONPATH=with_path(HERE / "frameworks", "PYTHONPATH"))
        matrix = DayMatrix(lab, cells, options.jobs, deadline, kept)
        try:
            with matrix.progress():
                matrix.all_modes(options.modes, options.runs, deadline)
        finally:
            kill_all()
            lab.leave()
    return matrix.rows


if __name__ == "__main__":
    sys.exit(main())
