"""A program of a measurement: its process group, its time limit, its output in files."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

STARTUP_S = 60


class Program:
    """A program that was started; its output is in files."""

    def __init__(self, lab, slice_path, arguments, limit_s):
        self.lab, self.slice_path, self.arguments = lab, slice_path, [str(argument) for argument in arguments]
        lab.started += 1
        self.out_path, self.err_path = (lab.scratch / f"{lab.started}.{kind}" for kind in ("out", "err"))
        prefix = [lab.gpuctl_path, "run", "--slice", slice_path, "--"] if slice_path else []
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                ["timeout", "-k", "20", str(limit_s), *prefix, *self.arguments],
                env=lab.env,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.limit_s = limit_s
        lab.programs.append(self)

    def out(self):
        return self.out_path.read_text(errors="replace")

    def err(self):
        return self.err_path.read_text(errors="replace").strip()

    def failure(self, what):
        words = " ".join(pathlib.Path(word).name if "/" in word else word for word in self.arguments)
        return RuntimeError(f"{words} ({self.slice_path or 'plain'}): {what}; {self.err()} {self.out()}".strip())

    def wait_ready(self, seconds=STARTUP_S):
        """Waits until a gpuslice-bench with --start-on-input waits for begin()."""
        deadline = time.monotonic() + seconds
        while "ready" not in self.err():
            if self.process.poll() is not None:
                raise self.failure(f"ended early with status {self.process.returncode}")
            if time.monotonic() > deadline:
                raise self.failure(f"not ready after {seconds} s")
            time.sleep(0.01)

    def wait_launching(self, seconds=STARTUP_S):
        """Waits until a program in slice s has launched a kernel: its inputs are made by then."""
        deadline = time.monotonic() + seconds
        while not (self.lab.usage("s") or {}).get("launches"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise self.failure("launched nothing")
            time.sleep(0.01)

    def begin(self, at_ns):
        self.process.stdin.write(f"{at_ns}\n".encode())
        self.process.stdin.flush()

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def finish(self):
        """Waits for the end. Status 3 means a wrong result, which is a result too."""
        status = self.process.wait()
        if status in (124, 137):
            raise self.failure(f"still running after {self.limit_s} s")
        if status not in (0, 3):
            raise self.failure(f"exit status {status}")
        return self.out()

    def report(self):
        report = json.loads(self.finish())
        self.lab.record(slice=self.slice_path, arguments=self.arguments[1:], report=report)
        return report

    def kill(self):
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
                break
