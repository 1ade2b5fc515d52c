"""gpuctl in Python: slices of GPUs.

    import gpuctl

    with gpuctl.connect() as daemon:
        batch = daemon.create("batch", max=40)
        batch.set(max=60)
        batch.run(["python3", "train.py"])
        with daemon.temporary("job", weight=50) as job:
            job.run(["./once"])
        print(daemon.slice("batch").granted)

    with gpuctl.request():  # in a program that runs in a slice: measured by itself
        answer()

Amounts of SMs are for each GPU, memory is in bytes. What the daemon refuses raises `Refused`. Where it cannot be
reached `Unreachable` is raised. Both are `Error`. A `Daemon` is for one thread at a time.
"""

from .daemon import SETTINGS, Daemon, Handle, connect, default_socket
from .errors import Error, Refused, Unreachable
from .model import Client, ClientUsage, Device, Latency, Slice, Snapshot, Status
from .requests import request

__all__ = [
    "SETTINGS",
    "Client",
    "ClientUsage",
    "Daemon",
    "Device",
    "Error",
    "Handle",
    "Latency",
    "Refused",
    "Slice",
    "Snapshot",
    "Status",
    "Unreachable",
    "connect",
    "default_socket",
    "request",
]
