#!/usr/bin/env python3
"""The compatibility suite: small CUDA programs (programs/), built in several ways, do the same in a slice as they do
plain.

Says how many of each build and kind of run were right, each that was not and how it differs, and how much longer they
took. Exit status 0: all that were counted are right; 1: some are not; 2: it could not be begun; 77: nothing of it can
run here."""

import argparse
import importlib.util
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from execute import Deadline, end_on_signals, kill_all
from head import BUILDS, PYTHON_BUILD, is_chosen, lacks, read_all
from lab import MPS, SOFTWARE, TIME_SLICED, LabOfModes, gpus
from matrix import FIRST_BUILDS, RIGHT, RUNS, SKIPPED, WRONG, Cell, Matrix, Row, empty
from table import all_right, document, report

from build import Builder, find_nvcc

HERE = pathlib.Path(__file__).resolve().parent
NOTHING_TO_RUN = 77
FIRST_MODE_SHARE = 0.55  # of the time left, where two modes are run: without MPS a program takes longer to start


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--build-dir", default="build", help="of gpuctl; programs are built in its directory compat (default: build)"
    )
    parser.add_argument("--programs", default=HERE / "programs", help="where the programs are")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN,...", help="names of programs, as the shell matches them"
    )
    parser.add_argument("--builds", default=",".join(BUILDS), help="some of " + ",".join(BUILDS))
    parser.add_argument(
        "--alone-builds",
        default=",".join(FIRST_BUILDS),
        help="those of programs that may reach others, which take long as "
        "they run one at a time under MPS (default: %(default)s)",
    )
    parser.add_argument("--runs", default=",".join(RUNS), help="some of " + ",".join(RUNS) + "; plain is always run")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--mps", dest="modes", action="store_const", const=(MPS,), help="under an MPS of its own")
    modes.add_argument(
        "--no-mps", dest="modes", action="store_const", const=(TIME_SLICED,), help="time-sliced (default)"
    )
    modes.add_argument(
        "--both-modes", dest="modes", action="store_const", const=(TIME_SLICED, MPS), help="time-sliced, then under MPS"
    )
    modes.add_argument(
        "--software", dest="modes", action="store_const", const=(SOFTWARE,), help="on the software GPU, what it carries"
    )
    parser.add_argument(
        "--frameworks", action="store_true", help="the programs of frameworks/, those that Python has the modules for"
    )
    parser.add_argument("--without", default="", metavar="WORD,...", help="skip programs that need that")
    parser.add_argument("--jobs", type=int, default=10, help="programs that run at the same time (default: 10)")
    parser.add_argument("--arch", help="architecture to build for (default: that of the first GPU, for example 90)")
    parser.add_argument("--build-only", action="store_true", help="build the programs and run none")
    parser.add_argument(
        "--depfile", metavar="FILE", help="with --build-only: writes FILE, and FILE.d with all it depends on"
    )
    parser.add_argument("--json", metavar="FILE", help="all results")
    parser.add_argument(
        "--results",
        metavar="DIR",
        help="for what failing runs and the daemon leave (default: BUILD_DIR/compat/results)",
    )
    parser.add_argument("--limit-s", type=float, default=3600, help="skip what is left after so many seconds")
    options = parser.parse_args(arguments)
    options.build_dir = pathlib.Path(options.build_dir).resolve()
    options.modes = options.modes or (TIME_SLICED,)
    options.builds, options.runs = options.builds.split(","), [kind for kind in RUNS if kind in options.runs.split(",")]
    for name in options.builds:
        if name not in BUILDS:
            parser.error(f"no such build: {name}")
    return options


def chosen(options, found, arch, count):
    """The programs to run, and a row for each that is not."""
    programs, errors = found
    software = SOFTWARE in options.modes
    rows = [Row("", "compile", name, "-", WRONG, error) for name, error in errors if is_chosen(name, options.only)]
    wanted = []
    for program in programs:
        if is_chosen(program.name, options.only):
            reason = lacks(program, arch, count, options.without.split(","), software) or missing_modules(program)
            if reason:
                rows.append(Row("", "compile", program.name, "-", SKIPPED, reason))
            else:
                wanted.append(program)
    return wanted, rows


def missing_modules(program):
    missing = [name for name in program.modules if not is_there(name)]
    return f"no Python module {' and '.join(missing)}" if missing else None


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def built_cells(options, programs, arch, deadline):
    """Builds the programs; the cells of those that could be, in the order of the builds, and a row for each build."""
    if not programs:
        return [], []
    builder = Builder(options.build_dir / "compat", arch, SOFTWARE in options.modes)
    made = builder.make_all(programs, options.builds, os.cpu_count(), deadline.share(0.5))
    cells, rows = [], []
    for build in BUILDS:
        for program in programs:
            if build not in builder.builds_of(program, options.builds):
                continue
            built = made.get((program.name, build))
            verdict, note = (
                (SKIPPED, "no time left") if built is None else (WRONG, built.error) if built.error else (RIGHT, "")
            )
            rows.append(Row("", "compile", program.name, build, verdict, note))
            if verdict == RIGHT:
                cells += [Cell(program, variant, build, built.path) for variant in range(len(program.variants))]
    return cells, rows


def run_matrix(options, cells, deadline):
    """The rows of all modes; a mode that could not be gone through has one that says so."""
    results = pathlib.Path(options.results or options.build_dir / "compat/results")
    with tempfile.TemporaryDirectory(prefix="compat.", ignore_cleanup_errors=True) as scratch:
        lab = LabOfModes(options.build_dir, results, pathlib.Path(scratch), SOFTWARE in options.modes)
        matrix = Matrix(
            lab,
            cells,
            options.jobs,
            deadline,
            empty(results / "failed"),
            BUILDS if SOFTWARE in options.modes else options.alone_builds.split(","),
        )
        try:
            with matrix.progress():
                for number, mode in enumerate(options.modes):
                    last = number == len(options.modes) - 1
                    matrix.deadline = deadline if last else deadline.share(FIRST_MODE_SHARE)
                    try:
                        matrix.run_mode(mode, options.runs)
                    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                        matrix.rows.append(Row(mode, "", "the runner", "-", WRONG, " ".join(str(error).split())))
                    lab.leave()
        finally:
            kill_all()
            lab.leave()
    return matrix.rows


def main():
    options = parse_arguments()
    deadline = Deadline(options.limit_s)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end_on_signals()
    gpu = ("90", 1, ["software GPU"]) if SOFTWARE in options.modes else gpus()
    if gpu is None and not (options.build_only and options.arch):
        print("compat: no GPU here (nvidia-smi); --software takes the software GPU", file=sys.stderr)
        return 2
    arch, count, said = gpu or (options.arch, 1, [])
    arch = options.arch or arch
    if options.frameworks:
        programs, rows = chosen(options, read_all(HERE / "frameworks", "_program.py"), arch, count)
        cells = [
            Cell(program, variant, PYTHON_BUILD, program.path)
            for program in programs
            for variant in range(len(program.variants))
        ]
    else:
        if find_nvcc() is None:
            print("compat: no nvcc; set NVCC", file=sys.stderr)
            return 2
        programs, rows = chosen(options, read_all(options.programs), arch, count)
        cells, built = built_cells(options, programs, arch, deadline)
        rows += built
    if options.build_only:
        write_depfile(options)
    elif cells:
        rows += run_matrix(options, cells, deadline)
    print("\n".join(report(rows)) if rows else "no programs", flush=True)
    if options.json:
        about = {
            "gpu": said,
            "arch": arch,
            "builds": options.builds,
            "runs": options.runs,
            "modes": options.modes,
            "jobs": options.jobs,
        }
        pathlib.Path(options.json).write_text(json.dumps(document(rows, about), indent=1), encoding="utf-8")
    if options.build_only:
        return 0
    if not cells and not any(row.verdict == WRONG for row in rows):
        return NOTHING_TO_RUN
    return 0 if all_right(rows) else 1


def write_depfile(options):
    """For ninja: a stamp, and that it depends on every file of the programs and on which there are."""
    if options.depfile:
        stamp, programs = pathlib.Path(options.depfile), pathlib.Path(options.programs).resolve()
        stamp.write_text("", encoding="utf-8")
        pathlib.Path(f"{stamp}.d").write_text(
            f"{stamp}: {programs} " + " ".join(map(str, sorted(programs.iterdir()))) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    sys.exit(main())
