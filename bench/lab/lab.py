"""The environment of the steps of bench/measure.py: the binaries, the GPU, one gpuctld at a time, and the record.

Every program gets its own process group and a time limit that holds even if this process is killed; it is ended when
the lab is closed. Every result goes to raw.jsonl at once.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time

from .client import Connection
from .program import STARTUP_S, Program

KERNELS = ("vectorAdd", "matrixMul", "reduction", "histogram", "work")
# Keys of gpuctl.toml, of [daemon] and [lab] (bench/lab.md), written so that texts can be put behind each other.
# Without it a program for which nothing is in force keeps its kernels in their original form.
PREEMPTIBLE = "daemon.always_preemptible = true\n"
ALWAYS_REWRITTEN = PREEMPTIBLE + "lab.latency_target_us = 1\n"  # short kernels too
LEAVES_MPS = 'daemon.mps = "leave"\n'  # the lab starts it, or there is to be none
PROGRAM_LIMIT_S = 120


def toolkit_program(name):
    """The path of a program of the CUDA toolkit, None without it."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


class Lab:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.out = pathlib.Path(options.out)
        self.scratch = pathlib.Path(options.scratch)
        self.bench_path = str(self.build / "kernels/gpuslice-bench")
        self.gpuctl_path = str(self.build / "src/gpuctl/gpuctl")
        self.raw = open(self.out / "raw.jsonl", "w", buffering=1, encoding="utf-8")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCTL_", "GPUSLICE_"))}
        self.env["XDG_CACHE_HOME"] = str(self.scratch / "cache")
        self.env["GPUSLICE_BACKGROUND"] = "0"  # kernels can be evicted from their first launch on
        if options.rehearse:
            paths = [str(self.build / "softgpu"), self.env.get("LD_LIBRARY_PATH")]
            self.env["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
            self.env.setdefault("SOFTGPU_WARP_INSTRUCTION_NS", "10000")
        self.step = ""
        self.started = 0
        self.programs = []
        self.connection = None

    def size(self, real, rehearsal):
        return rehearsal if self.options.rehearse else real

    def record(self, **entry):
        self.raw.write(json.dumps({"step": self.step, **entry}) + "\n")

    def enter(self, step):
        """Begins a step, with a socket, a state directory and a software GPU that no other step has used."""
        self.step = step
        self.env["GPUCTL_SOCKET"] = str(self.scratch / f"{step}.sock")
        if self.options.rehearse:
            self.env["SOFTGPU_TABLE"] = str(self.scratch / f"{step}.softgpu")

    def leave(self):
        """Ends everything that was started."""
        if self.connection:
            self.connection.close()
            self.connection = None
        for program in reversed(self.programs):
            program.kill()
        self.programs.clear()

    def start(self, slice_path, *arguments, limit_s=PROGRAM_LIMIT_S):
        return Program(self, slice_path, arguments, limit_s)

    def start_bench(self, slice_path, *arguments, limit_s=PROGRAM_LIMIT_S):
        return self.start(slice_path, self.bench_path, "run", *arguments, "--json", limit_s=limit_s)

    def kernels(self):
        """The names of all benchmark kernels."""
        listed = subprocess.run(
            [self.bench_path, "list", "--json"], env=self.env, capture_output=True, text=True, check=True, timeout=60
        )
        return [kernel["name"] for kernel in json.loads(listed.stdout)["kernels"]]

    def bench(self, slice_path, *arguments):
        """Runs gpuslice-bench run ARGUMENTS to its end, in a slice or plain (None)."""
        return self.start_bench(slice_path, *arguments).report()

    def together(self, *runs, apart_ns=0, meanwhile=None):
        """Starts several (slice, arguments) at the same moment, or each so much later than the one before it.
        `meanwhile` is called with the programs when they are about to begin. Returns their reports.
        """
        programs = [self.start_bench(slice_path, *arguments, "--start-on-input") for slice_path, arguments in runs]
        for program in programs:
            program.wait_ready()
        start = time.monotonic_ns() + 100_000_000
        for index, program in enumerate(programs):
            program.begin(start + index * apart_ns)
        if meanwhile:
            meanwhile(programs)
        return [program.report() for program in programs]

    @contextlib.contextmanager
    def gpuctld(self, *options, config="", limit_s=900):
        config_path = self.scratch / "gpuctl.toml"
        config_path.write_text(config if "daemon.mps" in config else LEAVES_MPS + config)
        state = self.scratch / f"{self.step}.state"
        shutil.rmtree(state, ignore_errors=True)
        command = [
            self.build / "src/gpuctld/gpuctld",
            "--socket",
            self.env["GPUCTL_SOCKET"],
            "--config",
            config_path,
            "--state",
            state,
            *options,
            *(["--software-gpu"] if self.options.rehearse else []),
        ]
        daemon = self.start(None, *command, limit_s=limit_s)
        try:
            deadline = time.monotonic() + STARTUP_S
            while subprocess.run([self.gpuctl_path, "status"], env=self.env, capture_output=True).returncode != 0:
                if daemon.process.poll() is not None or time.monotonic() > deadline:
                    raise daemon.failure("does not start")
                time.sleep(0.05)
            self.connection = Connection(self.env["GPUCTL_SOCKET"])
            yield daemon
        finally:
            if self.connection:
                self.connection.close()
                self.connection = None
            daemon.kill()
            with open(self.out / "gpuctld.log", "a", encoding="utf-8") as log:
                log.write(f"== {self.step} {' '.join(map(str, options))}\n{daemon.err()}\n")

    @contextlib.contextmanager
    def company(self):
        """Keeps another idle program of gpuctl's on the GPU."""
        self.gpuctl("create-slice", "company")
        program = self.start_bench("company", "work", "--count", 1, "--check", "none", "--start-on-input")
        try:
            program.wait_ready()
            yield
        finally:
            program.kill()

    @contextlib.contextmanager
    def environment(self, **variables):
        """Changes the environment of all programs that are started meanwhile."""
        before, self.env = self.env, {**self.env, **variables}
        try:
            yield
        finally:
            self.env = before

    def gpuctl(self, *arguments):
        subprocess.run(
            [self.gpuctl_path, *map(str, arguments)], env=self.env, check=True, stdout=subprocess.DEVNULL, timeout=30
        )

    def call(self, method, **parameters):
        return self.connection.call(method, **parameters)

    def usage(self, slice_path):
        return self.connection.usage(slice_path)

    def sms(self):
        return self.call("GetStatus")["devices"][0]["sms"]

    def wait_for(self, condition, what, seconds=STARTUP_S):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {seconds} s in vain: {what}")
            time.sleep(0.005)
        return value
