"""What starts.py and faults.py share: their options, the programs they take, and plain and sliced runs of one of
them."""

import argparse
import contextlib
import os
import pathlib
import resource
import sys
import tempfile

from execute import Deadline, end_on_signals, kill_all, run
from head import read_all
from lab import MPS, SOFTWARE, TIME_SLICED, LabOfModes, gpus

from build import Builder

HERE = pathlib.Path(__file__).resolve().parent
SHORT = "vector_add_tiny"
LIMIT_S = 60  # for any one run


def parser(about):
    options = argparse.ArgumentParser(description=about)
    options.add_argument(
        "--build-dir", default="build", help="of gpuctl; programs are built in its directory compat (default: build)"
    )
    options.add_argument("--programs", default=HERE / "programs", help="where the programs are")
    options.add_argument("--at-once", type=int, default=1, metavar="K", help="as many at the same time (default: 1)")
    options.add_argument("--limit-s", type=float, default=3600, help="ends after so many seconds, with what it has")
    modes = options.add_mutually_exclusive_group()
    modes.add_argument("--mps", dest="modes", action="store_const", const=(MPS,), help="under an MPS of its own")
    modes.add_argument("--no-mps", dest="modes", action="store_const", const=(TIME_SLICED,), help="time-sliced")
    modes.add_argument(
        "--both-modes", dest="modes", action="store_const", const=(TIME_SLICED, MPS), help="time-sliced, then under MPS"
    )
    modes.add_argument("--software", dest="modes", action="store_const", const=(SOFTWARE,), help="on the software GPU")
    return options


class Session:
    """A lab and built programs."""

    def __init__(self, options):
        options.build_dir = pathlib.Path(options.build_dir).resolve()
        self.options = options
        self.software = SOFTWARE in options.modes
        self.deadline = Deadline(options.limit_s)
        gpu = ("90", 1, []) if self.software else gpus()
        if gpu is None:
            sys.exit("compat: no GPU here (nvidia-smi); --software takes the software GPU")
        self.builder = Builder(options.build_dir / "compat", gpu[0], self.software)
        self.build = "shared" if self.software else "both"
        self.lab = None

    @contextlib.contextmanager
    def open(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        end_on_signals()
        with tempfile.TemporaryDirectory(prefix="compat.", ignore_cleanup_errors=True) as scratch:
            results = self.options.build_dir / "compat" / "results"
            self.lab = LabOfModes(self.options.build_dir, results, pathlib.Path(scratch), self.software)
            try:
                yield
            finally:
                kill_all()
                self.lab.leave()

    def programs(self, wanted):
        """[(program, path)] of the programs that `wanted` says yes to and that could be built."""
        found = [
            program
            for program in read_all(self.options.programs)[0]
            if wanted(program) and (program.soft if self.software else self.build in program.builds)
        ]
        made = self.builder.make_all(found, (self.build,), os.cpu_count(), self.deadline.share(0.5))
        for program in found:
            built = made.get((program.name, self.build))
            if built is None or built.error:
                print(f"{program.name}: not built: {built.error if built else 'no time left'}", file=sys.stderr)
        return [
            (program, made[program.name, self.build].path)
            for program in found
            if (program.name, self.build) in made and not made[program.name, self.build].error
        ]

    def run(self, command, in_slice):
        """One run; each side has caches of its own, which are kept from run to run."""
        root = (
            self.lab.scratch
            / "kept"
            / self.lab.step
            / ("slice" if in_slice else "plain")
            / pathlib.Path(command[0]).name
        )
        env = dict(self.lab.env)
        for name in ("XDG_CACHE_HOME", "CUDA_CACHE_PATH"):
            env[name] = str(root / name.lower())
            os.makedirs(env[name], mode=0o700, exist_ok=True)
        return run(
            self.lab.in_slice(command) if in_slice else command,
            env,
            LIMIT_S,
            None,
            self.lab.scratch,
            self.lab.end_in_slice if in_slice else None,
        )
