"""Runs a program to its end, or to its time limit, with what it printed in files: helpers that outlive it keep nobody
waiting."""

import contextlib
import dataclasses
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KILLED_WITHIN_S = 20
ENDS_WITHIN_S = 15  # after a signal that the runner sends it
LOOK_S = 0.02


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int  # as subprocess has it: below 0 a signal
    out: str
    err: str
    wall_s: float
    ended: str = "by itself"  # or "timeout", "no time left"
    limit_s: float = 0
    pid: int = 0
    began: float = 0  # time.monotonic()

    def status_text(self):
        if self.ended == "timeout":
            return f"timeout after {self.limit_s:.0f} s"
        if self.status >= 0:
            return f"exit {self.status}"
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


class Deadline:
    """When everything is to be over."""

    def __init__(self, seconds):
        self.at = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.at - time.monotonic())

    def passed(self):
        return self.left() <= 0

    def share(self, part):
        """A deadline after so much of what is left."""
        return Deadline(self.left() * part)


_running = {}
_lock = threading.RLock()  # a signal may come while it is held
_closed = False


def kill_group(process):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_all():
    """At the end of the runner, however it comes: nothing that it started goes on, and nothing more is started."""
    global _closed
    with _lock:
        _closed = True
        for process in _running.values():
            kill_group(process)


def ending():
    """Whether kill_all() was called."""
    return _closed


def run(command, env, limit_s, deadline=None, directory=None, end=None, signalled=()):
    """The outcome of one run, in a working directory of its own. `end`: called with the process id of one that takes
    too long, before it is killed. `signalled`: (line, number), the signal that its process group gets, as from a
    terminal, when it has printed that line; it must end soon then."""
    until_deadline = deadline.left() if deadline else limit_s + 1
    work = pathlib.Path(tempfile.mkdtemp(prefix="run.", dir=directory))
    try:
        with open(work / "stdout", "wb") as out, open(work / "stderr", "wb") as err:
            inside = work / "work"
            inside.mkdir()
            with _lock:
                if _closed:
                    raise RuntimeError("the runner is ending")
                began = time.monotonic()
                process = subprocess.Popen(
                    [str(part) for part in command],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=inside,
                    start_new_session=True,
                )
                _running[process.pid] = process
        if signalled and _signal(process, work / "stdout", min(limit_s, until_deadline), *signalled):
            limit_s = min(limit_s, time.monotonic() - began + ENDS_WITHIN_S)
        passed_s = time.monotonic() - began
        status, late = _wait(process, max(0.0, min(limit_s, until_deadline) - passed_s), end)
        wall_s = time.monotonic() - began
        ended = "by itself" if not late else "timeout" if limit_s <= until_deadline else "no time left"
        return Outcome(status, read(work / "stdout"), read(work / "stderr"), wall_s, ended, limit_s, process.pid, began)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _signal(process, path, seconds, line, number):
    """Whether it printed the line in that time, and so got the signal."""
    deadline = Deadline(seconds)
    while not ends_within(process, LOOK_S) and not deadline.passed():
        if line in read(path).splitlines():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            return True
    return False


def _wait(process, seconds, end):
    """The status, and whether it had to be killed. A process that cannot be killed (it is in the driver) is left
    behind."""
    try:
        late = not ends_within(process, seconds)
        if late:
            if end and not _closed:
                end(process.pid)
            kill_group(process)
            if not ends_within(process, KILLED_WITHIN_S):
                return -signal.SIGKILL, True
        return process.wait(), late
    finally:
        with _lock:
            _running.pop(process.pid, None)


def ends_within(process, seconds):
    """Waits for that; Popen.wait() with a timeout would look every 50 ms."""
    watched = os.pidfd_open(process.pid)
    try:
        ended = select.poll()
        ended.register(watched, select.POLLIN)
        return bool(ended.poll(seconds * 1000))
    finally:
        os.close(watched)


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def end_on_signals():
    """SIGINT and SIGTERM end all programs, then this one in good order."""

    def end(number, _):
        kill_all()
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
