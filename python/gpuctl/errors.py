"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Any failure of this package."""


class Unreachable(Error):
    """gpuctld is not there, or closed the connection."""


class Refused(Error):
    """gpuctld refused a call.

    name: the error without its interface, such as "NoSuchSlice"; io.gpuctl(7) has them all.
    parameters: what came with it.
    """

    def __init__(self, method: str, error: str, parameters: dict[str, Any]):
        self.method, self.name, self.parameters = method, error.rpartition(".")[2], parameters
        details = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        super().__init__(f"{method}: {self.name}" + (f" ({details})" if details else ""))
