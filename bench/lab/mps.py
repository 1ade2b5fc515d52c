"""A private MPS and its processes."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

MPS_ANSWERS_S = 20
MPS_RECOVERS_S = 5
PROBE_S = 20
# A client of MPS that makes a context. Status 3: it could not.
PROBE = """
import ctypes, sys
cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
sys.exit(3 if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0)
         or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) else 0)
"""


def runs(pid):
    """Whether the process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def group_of(leader):
    """The processes of a group, its leader last."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[2]) == leader:
                found.append(int(entry.name))
    return sorted(found, key=lambda pid: (pid == leader, pid))


def ends(pid, seconds):
    """Waits until a process has ended or the time is up. Returns whether it has ended."""
    deadline = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs(pid)


class Mps:
    """A private MPS: a control daemon and the servers that it starts."""

    def __init__(self, pipe, log):
        self.pipe, self.log = pipe, log
        self.restarts = 0

    @property
    def env(self):
        return {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe), "CUDA_MPS_LOG_DIRECTORY": str(self.log)}

    def start(self):
        for directory in (self.pipe, self.log):
            directory.mkdir(exist_ok=True)
        subprocess.run(
            ["setsid", "nvidia-cuda-mps-control", "-d"],
            env={**os.environ, **self.env},
            check=True,
            timeout=MPS_ANSWERS_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, words):
        """The answer of the control daemon, or None if it gives none."""
        try:
            done = subprocess.run(
                ["nvidia-cuda-mps-control"],
                env={**os.environ, **self.env},
                input=words + "\n",
                capture_output=True,
                text=True,
                timeout=MPS_ANSWERS_S,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    def serves(self):
        """Whether new programs get a working server."""
        servers = self.ask("get_server_list")
        if servers is None:
            return False
        states = [self.ask(f"get_server_status {server}") for server in servers.split() if server.isdigit()]
        return not any(state is None or "FAULT" in state.upper() for state in states)

    def takes_a_client(self):
        """Whether a new program gets a context. While a server waits for the work of a dead client, its state does not
        tell.
        """
        try:
            done = subprocess.run(
                [sys.executable, "-c", PROBE],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PROBE_S,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0

    def mend(self, probe=False):
        """Called after a program that may have taken the server with it: waits until the server recovers, or restarts
        MPS. `probe`: tests it with a client.
        """
        deadline = time.monotonic() + MPS_RECOVERS_S
        while not (self.serves() and (not probe or self.takes_a_client())):
            if time.monotonic() > deadline:
                self.stop()
                self.start()
                self.restarts += 1
                return
            time.sleep(0.05)

    def stop(self):
        """Stops MPS in an orderly way or, if it does not answer, by its process id."""
        try:
            control = int((self.pipe / "nvidia-cuda-mps-control.pid").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        self.ask("quit -t 5")
        if not ends(control, MPS_ANSWERS_S):
            with contextlib.suppress(ProcessLookupError):
                os.kill(control, signal.SIGKILL)
            ends(control, MPS_ANSWERS_S)
