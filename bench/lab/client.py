"""Clients of the daemon for scripts and tests: those of the Python package (python/gpuctl)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from gpuctl.varlink import Varlink  # noqa: E402

from gpuctl import Daemon, Error  # noqa: E402

__all__ = ["Connection", "Failed", "Varlink"]

Failed = Error


class Connection(Daemon):
    """A connection for callers that expect every call to succeed."""

    def __init__(self, path, patience_s=30):
        super().__init__(Varlink(path, patience_s), str(path))

    def usage(self, slice_path):
        """The usage of a slice's first client on the first GPU; None while there is none."""
        clients = self.call("GetSlice", path=slice_path)["clients"]
        return clients[0]["usage"][0] if clients and clients[0]["usage"] else None
