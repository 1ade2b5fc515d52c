"""The lab of the co-run matrix and of the compatibility suite: with time-slicing or a private MPS, and a gpuctld that
makes storms if asked to.
"""

import contextlib
import os
import pathlib
import subprocess
import types

from .lab import ALWAYS_REWRITTEN, Lab
from .mps import Mps, group_of

TIME_SLICED, MPS, SOFTWARE = "time-sliced", "mps", "software"
MANAGED = "mps of gpuctld"
STORM_US = 300
SOFTWARE_STORM_US = 2000
DAEMON_LIMIT_S = 7200
END_IN_SLICE_S = 20


def gpus():
    """The architecture of the first GPU ("90"), the number of GPUs, and what nvidia-smi reports of them; None without
    any. CUDA_VISIBLE_DEVICES counts, as the numbers or UUIDs of nvidia-smi.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = ["-i", visible] if visible else []
    try:
        said = (
            subprocess.run(
                ["nvidia-smi", *chosen, "--query-gpu=compute_cap,name,driver_version", "--format=csv,noheader"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            .stdout.strip()
            .splitlines()
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return (said[0].partition(",")[0].strip().replace(".", ""), len(said), said) if said else None


class LabOfModes(Lab):
    def __init__(self, build, out, scratch, software):
        for directory in (out, scratch):
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
        super().__init__(types.SimpleNamespace(build=build, out=out, scratch=scratch, rehearse=software))
        self.software = software
        del self.env["GPUSLICE_BACKGROUND"]  # programs start as users start them
        if software:  # fast enough for programs that give a GPU work for a tenth of a second
            self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = os.environ.get("SOFTGPU_WARP_INSTRUCTION_NS", "1000")
        self.mps = None
        self.daemon = None

    @contextlib.contextmanager
    def mode(self, name):
        """Enters a mode: time-sliced, even if an MPS runs on the machine, under a private MPS, or where gpuctld may
        start one.
        """
        self.enter(name.replace(" ", "-"))
        if name == MANAGED:
            before = self.env
            self.env = {key: value for key, value in before.items() if not key.startswith("CUDA_MPS_")}
            places = pathlib.Path(self.env["GPUCTL_SOCKET"] + ".mps")
            try:
                yield
            finally:
                self.env = before
                for place in places.iterdir() if places.is_dir() else ():
                    Mps(place, place / "log").stop()  # it outlives the daemon that started it
            return
        if name != MPS:
            with self.environment(CUDA_MPS_PIPE_DIRECTORY=str(self.scratch / "no-mps")):
                yield
            return
        self.mps = Mps(self.scratch / "mps", self.scratch / "mps-log")
        try:
            self.mps.start()
            with self.environment(**self.mps.env):
                yield
        finally:
            self.mps.stop()
            self.mps = None

    @contextlib.contextmanager
    def serving(self, storm=False):
        """Starts a gpuctld with a slice s."""
        storm_us = SOFTWARE_STORM_US if self.software else STORM_US
        options, config = (("--evict-storm", storm_us), ALWAYS_REWRITTEN) if storm else ((), "")
        with self.gpuctld(*options, config=config, limit_s=DAEMON_LIMIT_S) as self.daemon:
            self.gpuctl("create-slice", "s")
            try:
                yield
            finally:
                self.daemon = None

    def daemon_failure(self):
        """What happened to gpuctld, if it has ended or does not answer."""
        status = self.daemon.process.poll()
        if status is not None:
            return f"gpuctld ended with status {status}: {(self.daemon.err().splitlines() or [''])[-1]}"
        answer = subprocess.run([self.gpuctl_path, "status"], env=self.env, capture_output=True, text=True, timeout=60)
        return None if answer.returncode == 0 else f"gpuctl status: {answer.stderr.strip()}"

    def end_in_slice(self, pid):
        """Ends a program in a slice and the programs it started, in the documented way: their work on the GPU first.
        Processes that are not clients are left running.
        """
        for member in group_of(pid):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    [self.gpuctl_path, "kill", str(member)],
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=END_IN_SLICE_S,
                )

    def in_slice(self, command):
        return [self.gpuctl_path, "run", "--slice", "s", "--", *command]
