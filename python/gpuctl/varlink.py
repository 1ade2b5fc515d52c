"""One connection to gpuctld: Varlink, which is JSON over a Unix socket (io.gpuctl(7))."""

from __future__ import annotations

import array
import errno
import json
import os
import socket
import struct
import time
from typing import Any

MOST = 64 << 20  # bytes of a reply


class Varlink:
    """Calls, and replies as they arrive, with the file descriptors they carry. One thread at a time."""

    def __init__(self, path: str | os.PathLike[str], patience_s: float = 30):
        self.socket = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + patience_s
        try:
            while not self._is_connected():  # a signal may interrupt connect(), which Python then takes for done
                # Where the socket's queue is full, connecting waits for a place. With Python's timeout it would fail
                # at once. 0 would be for ever.
                left = struct.pack("ll", *divmod(max(int((until - time.monotonic()) * 1e6), 1), 10**6))
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, left)
                self.socket.connect(os.fspath(path))
            self.socket.settimeout(patience_s)
        except BlockingIOError as error:
            self.socket.close()
            raise TimeoutError("it did not answer in time") from error
        except BaseException:
            self.socket.close()
            raise
        self.patience_s = patience_s
        self.fds: list[int] = []
        self.buffer = b""

    def _is_connected(self) -> bool:
        try:
            self.socket.getpeername()
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
            return False
        return True

    def send(self, method: str, parameters: dict[str, Any], more: bool = False) -> None:
        message: dict[str, Any] = {"method": f"io.gpuctl.{method}", "parameters": parameters}
        if more:
            message["more"] = True
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def call(self, method: str, more_s: float = 0, /, **parameters: Any) -> dict[str, Any]:
        """The whole reply, also if it is an error. Raises what `receive` does, and closes the connection then: what
        comes late must not be taken for the reply to the next call."""
        if self.socket.fileno() < 0:
            raise EOFError("this connection was closed, as a call had no reply; connect again")
        try:
            self.send(method, parameters)
            return self.receive(more_s)
        except BaseException:
            self.socket.close()
            raise

    def receive(self, more_s: float = 0) -> dict[str, Any]:
        """The next reply. Raises EOFError if the daemon closed the connection, TimeoutError if it takes longer than
        patience_s and more_s in all, ValueError if it is no reply."""
        until = time.monotonic() + self.patience_s + more_s
        while b"\0" not in self.buffer:
            self.socket.settimeout(max(until - time.monotonic(), 0.001))
            if time.monotonic() > until:
                raise TimeoutError("no whole reply in time")
            if len(self.buffer) > MOST:
                raise ValueError("a reply without an end")
            data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_LEN(32))
            if not data:
                raise EOFError
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.fds += array.array("i", content[: len(content) - len(content) % 4])
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        try:
            reply = json.loads(message)
        except RecursionError:
            raise ValueError("a reply that is nested too deeply") from None
        if not isinstance(reply, dict) or not isinstance(reply.get("parameters", {}), dict):
            raise ValueError("no reply of Varlink")
        return reply

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        self.socket.close()
