"""Applications of PyTorch's operations (torch_jobs.py), with durations of FRS's Table I."""

import json
import pathlib
import sys

from .schedulers import FRS, Application

PROGRAM = pathlib.Path(__file__).with_name("torch_jobs.py")
WANTED = [
    ("convolution", FRS["CEDD"], "convolution"),
    ("attention", FRS["SPMV"], "attention"),
    ("product", FRS["VA"], "product"),
    ("gelu", FRS["BS"], "gelu"),
    ("softmax", FRS["MM"], "softmax"),
    ("sort", FRS["RED"], "sort"),
]


class TorchApplication(Application):
    def words(self):
        return f"{self.name}: {self.repeats} times a job"

    def command(self, lab, samples, period, options, check):
        period_us, count = period
        words = ("--repeats", self.repeats, "--period-us", period_us, "--count", count, "--samples", samples)
        return [sys.executable, PROGRAM, self.kernel, *words, *options]


def made(lab, name, ms, job):
    """That takes so long alone, in jobs of whole operations."""
    found = json.loads(lab.start(None, sys.executable, PROGRAM, job, "--calibrate-ms", ms).finish())
    return TorchApplication(name, job, (), found["repeats"])
