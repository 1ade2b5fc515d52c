"""Slices, by a connection to gpuctld."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from . import amounts
from .errors import Refused, Unreachable
from .model import Client, Slice, Snapshot, Status, read_client, read_slice, read_snapshot, read_status
from .varlink import Varlink


def default_socket() -> str:
    """Where gpuctl looks for the daemon: $GPUCTL_SOCKET, else the system's."""
    return os.environ.get("GPUCTL_SOCKET") or "/run/gpuctld/io.gpuctl"


def connect(socket: str | os.PathLike[str] | None = None, patience_s: float = 30) -> Daemon:
    """Raises Unreachable if there is no daemon. patience_s: how long a call may take. After one that takes longer, or
    is interrupted, the connection is closed."""
    path = os.fspath(socket) if socket is not None else default_socket()
    try:
        return Daemon(Varlink(path, patience_s), path)
    except OSError as error:
        raise Unreachable(f"cannot reach gpuctld at {path}: {error.strerror or error}") from error


class Daemon:
    """One connection. It is closed by `close`, or at the end of a `with`."""

    def __init__(self, varlink: Varlink, socket: str):
        self._varlink = varlink
        self.socket = socket

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._varlink.close()

    def call(self, method: str, more_s: float = 0, /, **parameters: Any) -> dict[str, Any]:
        """Any method of io.gpuctl: the parameters of its reply. more_s: how much longer than patience_s it may take."""
        try:
            reply = self._varlink.call(method, more_s, **parameters)
        except (EOFError, OSError, ValueError) as error:
            raise Unreachable(f"{method}: gpuctld closed the connection or did not answer: {error}") from error
        if "error" in reply:
            raise Refused(method, reply["error"], reply.get("parameters", {}))
        answer: dict[str, Any] = reply.get("parameters", {})
        return answer

    def status(self) -> Status:
        return read_status(self.call("GetStatus"))

    def slices(self) -> list[Slice]:
        return [read_slice(said) for said in self.call("ListSlices")["slices"]]

    def slice(self, path: str) -> Slice:
        return read_slice(self.call("GetSlice", path=path)["slice"])

    def clients(self, path: str | None = None) -> list[Client]:
        """Those in one slice, or all of them."""
        said = self.call("ListClients") if path is None else self.call("GetSlice", path=path)
        return [read_client(one) for one in said["clients"]]

    def snapshot(self) -> Snapshot:
        """Devices, slices and clients at one instant."""
        return read_snapshot(self.call("Monitor", interval_ms=60000))

    def handle(self, path: str) -> Handle:
        """For a slice that is there already. Nothing is asked."""
        return Handle(self, path)

    def create(self, path: str, **settings: Any) -> Handle:
        """Settings are those of `SliceSettings` in io.gpuctl(7): reserve, max, weight, latency, memory_max ...

        None as max or memory_max is "no limit". Amounts can be text: "25%" of each GPU, "0:8" of GPU 0.
        """
        self.call("CreateSlice", path=path, settings=_settings(settings))
        return Handle(self, path)

    @contextlib.contextmanager
    def temporary(self, path: str, **settings: Any) -> Iterator[Handle]:
        """A slice that is deleted at the end of the `with`. Programs that still run in it are ended first."""
        made = self.create(path, **settings)
        try:
            yield made
        finally:
            # A call that was interrupted has closed our connection.
            with connect(self.socket, self._varlink.patience_s) as anew:
                anew.handle(path).kill()
                anew.handle(path).delete()


class Handle:
    """A slice by its path."""

    def __init__(self, daemon: Daemon, path: str):
        self.daemon, self.path = daemon, path

    def set(self, **settings: Any) -> Slice:
        """Changes these settings, all or none of them, at once and for programs that run."""
        return read_slice(self.daemon.call("SetSlice", path=self.path, settings=_settings(settings))["slice"])

    def get(self) -> Slice:
        return self.daemon.slice(self.path)

    def clients(self) -> list[Client]:
        return self.daemon.clients(self.path)

    def delete(self, recursive: bool = False) -> None:
        """Raises Refused ("SliceBusy") while programs run in it or slices lie below it. recursive: what is below goes
        too, all or nothing, unless programs run there."""
        self.daemon.call("DeleteSlice", path=self.path, **({"recursive": True} if recursive else {}))

    def kill(self, timeout_ms: int = 2000) -> None:
        """Ends the programs in it and below it, and waits until they have ended."""
        self.daemon.call("Kill", timeout_ms / 1000, slice=self.path, timeout_ms=timeout_ms)

    def command(self, program: Sequence[str | os.PathLike[str]]) -> list[str]:
        """What starts `program` in the slice, for subprocess and the like. It needs gpuctl in PATH."""
        return [
            "gpuctl",
            "--socket",
            self.daemon.socket,
            "run",
            "--slice",
            self.path,
            "--",
            *(os.fspath(part) for part in program),
        ]

    def run(self, program: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[Any]:
        """subprocess.run() of `program` in the slice."""
        return subprocess.run(self.command(program), **options)

    def start(self, program: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[Any]:
        """subprocess.Popen() of `program` in the slice."""
        return subprocess.Popen(self.command(program), **options)


SETTINGS = (
    "reserve",
    "reserve_mode",
    "reserve_hold_ms",
    "max",
    "quota",
    "burst",
    "weight",
    "priority",
    "isolation",
    "memory_min",
    "memory_max",
    "memory_high",
    "latency",
    "policy",
    "frozen",
    "owner_uid",
    "owner_gid",
    "join",
    "devices",
)


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, value in settings.items():
        said |= amounts.settings_of(name, value) if name in amounts.AMOUNTS else {name: value}
    return said
