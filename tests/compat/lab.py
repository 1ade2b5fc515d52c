"""The lab of bench/, for the programs of this folder, which are started by their path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

from bench.lab import mps  # noqa: E402
from bench.lab.lab import toolkit_program  # noqa: E402
from bench.lab.modes import MPS, SOFTWARE, TIME_SLICED, LabOfModes, gpus  # noqa: E402

__all__ = ["MPS", "SOFTWARE", "TIME_SLICED", "LabOfModes", "gpus", "mps", "toolkit_program"]
