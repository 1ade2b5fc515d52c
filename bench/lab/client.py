"""Clients of the daemon for scripts and tests: those of the Python package (python/gpuctl)."""

import fcntl
import mmap
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from gpuctl.varlink import Varlink  # noqa: E402

from gpuctl import Daemon, Error  # noqa: E402

__all__ = ["Connection", "Failed", "Varlink", "attach", "take_page"]

F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE = 1033, 1, 16  # fcntl.h

Failed = Error


class Connection(Daemon):
    """A connection for callers that expect every call to succeed."""

    def __init__(self, path, patience_s=30):
        super().__init__(Varlink(path, patience_s), str(path))

    def usage(self, slice_path):
        """The usage of a slice's first client on the first GPU; None while there is none."""
        clients = self.call("GetSlice", path=slice_path)["clients"]
        return clients[0]["usage"][0] if clients and clients[0]["usage"] else None


def take_page(file):
    """Maps what MakePage gave, takes its memory and seals it."""
    page = mmap.mmap(file, os.fstat(file).st_size)
    page[:] = bytes(len(page))
    fcntl.fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
    return page


def attach(varlink, **parameters):
    """As libgpuslice does. Returns the reply, the page and the eventfd; the last two are None if the reply is an error.
    Who is too late, as its machine is busy, tries again.
    """
    while True:
        made = varlink.call("MakePage")
        if "error" in made:
            return made, None, None
        file = varlink.fds.pop()
        page = take_page(file)
        os.close(file)
        reply = varlink.call("Attach", **parameters)
        if reply.get("error") != "io.gpuctl.NoPage":
            return reply, page, varlink.fds.pop() if varlink.fds else None
