"""Clients of the daemon (Varlink, src/ipc/io.gpuctl.varlink), for scripts and tests."""

import array
import json
import os
import socket
import struct


class Failed(RuntimeError):
    """The daemon refused a call, or closed the connection."""


class Varlink:
    """One connection: calls, and replies as they arrive, with the file descriptors they carry."""

    def __init__(self, path, patience_s=30):
        self.socket = socket.socket(socket.AF_UNIX)
        # Where the socket's queue is full, connecting waits for a place. With Python's timeout it would fail at once.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", patience_s, 0))
        try:
            self.socket.connect(str(path))
            self.socket.settimeout(patience_s)
        except OSError:
            self.socket.close()
            raise
        self.fds = []
        self.buffer = b""

    def call(self, method, **parameters):
        """Returns the whole reply, also if it is an error."""
        self.socket.sendall(json.dumps({"method": f"io.gpuctl.{method}", "parameters": parameters}).encode() + b"\0")
        return self.receive()

    def receive(self):
        """Returns the next reply. Raises EOFError if the daemon closed the connection."""
        while b"\0" not in self.buffer:
            data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_LEN(32))
            if not data:
                raise EOFError
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.fds += array.array("i", content[: len(content) - len(content) % 4])
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.socket.close()


class Connection(Varlink):
    """A connection for callers that expect every call to succeed."""

    def call(self, method, **parameters):
        """Returns the parameters of the reply. Raises Failed if it is an error."""
        try:
            reply = super().call(method, **parameters)
        except EOFError:
            raise Failed(f"{method}: the daemon closed the connection") from None
        if "error" in reply:
            raise Failed(f"{method}: {reply}")
        return reply["parameters"]

    def usage(self, slice_path):
        """The usage of a slice's first client on the first GPU; None while there is none."""
        clients = self.call("GetSlice", path=slice_path)["clients"]
        return clients[0]["usage"][0] if clients and clients[0]["usage"] else None
