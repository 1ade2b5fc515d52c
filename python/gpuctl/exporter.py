"""Metrics of gpuctl for Prometheus, in the classic and in the OpenMetrics text format, whichever the scraper asks for.

    gpuctl-exporter --listen 127.0.0.1:9836

Each scrape asks gpuctld once. docs/metrics.md has the names; a test compares it with what is exported.
"""

from __future__ import annotations

import argparse
import http.server
import itertools
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from .daemon import Daemon, connect, default_socket
from .errors import Error
from .model import Client, Device, Slice, Snapshot, Status

PORT = 9836
PATIENCE_S = 2  # for a reply: less than half of what Prometheus waits for a scrape
# Bounds of the buckets in which gpuctld counts latencies, in microseconds. What is longer than the last is in "+Inf".
BOUNDS_US = [(1 << bits) / 1000 for bits in range(14, 37)]
GPU = ["gpu", "UUID"]  # as DCGM's exporter has them, so that both can be joined


class GpuctlCollector(Collector):
    """What gpuctld says at the moment of a scrape. Any thread; scrapes follow each other."""

    def __init__(self, socket: str):
        self._socket = socket
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        return []  # names depend on the daemon; nothing is asked before the first scrape

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            try:
                with connect(self._socket, PATIENCE_S) as daemon:
                    metrics = list(_metrics(daemon))
            except (Error, LookupError, TypeError, AttributeError) as error:  # the latter: no daemon of ours
                print(f"gpuctl-exporter: {error}", file=sys.stderr, flush=True)
                metrics = []
        up = GaugeMetricFamily("gpuctl_up", "Whether gpuctld answered this scrape")
        up.add_metric([], 1 if metrics else 0)
        yield up
        yield from metrics


def _metrics(daemon: Daemon) -> Iterator[Metric]:
    status, now = daemon.status(), daemon.snapshot()
    yield from _of_daemon(status)
    yield from _of_devices(now.devices)
    yield from _of_settings(now.slices)
    yield from _of_memory_settings(now)
    yield _of_sight(now)
    yield from _of_use(now)


def _of_daemon(status: Status) -> Iterator[Metric]:
    yield InfoMetricFamily("gpuctl_build", "The running gpuctld", {"version": status.version})
    yield _gauge("gpuctl_uptime_seconds", "Since gpuctld started", [], [([], status.uptime_s)])
    yield _gauge("gpuctl_notes", "Notes that `gpuctl status` prints", [], [([], len(status.notes))])
    yield from _of_mps(status)


def _of_mps(status: Status) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "gpuctl_mps",
        'An MPS, of an isolated slice or ("") of all that are not isolated; state is "ours" where gpuctld started it',
        labels=["slice"],
    )
    for one in status.mps:
        info.add_metric([one.slice or ""], {"state": one.state})
    yield info
    help = "Programs of slices that are in this MPS"
    yield _gauge("gpuctl_mps_programs", help, ["slice"], [([one.slice or ""], one.programs) for one in status.mps])


def _of_devices(devices: Sequence[Device]) -> Iterator[Metric]:
    info = InfoMetricFamily(
        "gpuctl_gpu",
        'A GPU; mode is "time-sliced" where programs take turns because MPS does not run',
        labels=GPU,
    )
    for one in devices:
        info.add_metric(_gpu(one), {"model": one.name, "kind": one.kind, "mode": one.mode})
    yield info
    yield _gauge("gpuctl_gpu_sms", "SMs of the GPU", GPU, [(_gpu(one), one.sms) for one in devices])
    yield _gauge(
        "gpuctl_gpu_memory_bytes", "Memory of the GPU", GPU, [(_gpu(one), one.memory_bytes) for one in devices]
    )


def _of_settings(slices: Sequence[Slice]) -> Iterator[Metric]:
    def setting(name: str, help: str, values: Iterable[tuple[str, float | None]]) -> Metric:
        present = [([path], value) for path, value in values if value is not None]
        return _gauge(f"gpuctl_slice_{name}", help, ["slice"], present)

    def most(one: Slice, name: str) -> int | None:
        """What is set, or in force on any GPU where that differs."""
        differing = [on for on in one.on_gpus if not on.same]
        there: list[int | None] = [getattr(on, name) for on in differing] or [getattr(one, name)]
        return None if None in there else max(value for value in there if value is not None)

    yield setting(
        "reserve_sms", "SMs of each GPU that are reserved", ((one.path, most(one, "reserve")) for one in slices)
    )
    yield setting(
        "max_sms", "SMs of each GPU at most; absent: no limit", ((one.path, most(one, "max")) for one in slices)
    )
    yield setting("weight", "Weight among its siblings", ((one.path, one.weight) for one in slices))
    yield setting("priority", "Greater goes first", ((one.path, one.priority) for one in slices))


def _of_memory_settings(now: Snapshot) -> Iterator[Metric]:
    for name, help in (
        ("memory_min", "Memory of the GPU that is kept for it"),
        ("memory_max", "Memory of the GPU at most; absent: no limit"),
        ("memory_high", "Memory of the GPU above which allocations wait; absent: none do"),
    ):
        values: list[tuple[list[str], float]] = []
        for one in now.slices:
            # What is kept may be less on one GPU though the same is set for each.
            by_gpu = {on.device: on for on in one.on_gpus if name == "memory_min" or not on.same}
            for gpu in now.devices:
                value = getattr(by_gpu.get(gpu.index, one), name)
                if value is not None:
                    values.append(([one.path, *_gpu(gpu)], value))
        yield _gauge(f"gpuctl_slice_{name}_bytes", help, ["slice", *GPU], values)


def _of_sight(now: Snapshot) -> Metric:
    hidden = {(one.path, on.device) for one in now.slices for on in one.on_gpus if on.seen is False}
    seen = [([one.path, *_gpu(gpu)], (one.path, gpu.index) not in hidden) for one in now.slices for gpu in now.devices]
    return _gauge("gpuctl_slice_sees_gpu", "Whether programs that start in it see the GPU", ["slice", *GPU], seen)


def _of_use(now: Snapshot) -> Iterator[Metric]:
    def of_slice(name: str, help: str, values: Iterable[tuple[str, float]]) -> Metric:
        return _gauge(f"gpuctl_slice_{name}", help, ["slice"], [([path], value) for path, value in values])

    slices = now.slices
    yield of_slice("granted_sms", "SMs granted, the most of any GPU", ((one.path, one.granted) for one in slices))
    yield of_slice("demand_sms", "SMs it could use, the most of any GPU", ((one.path, one.demand) for one in slices))
    yield of_slice("programs", "Programs that run directly in it", ((one.path, one.clients) for one in slices))
    yield _counter(
        "gpuctl_slice_faults",
        "Times that the driver broke a context of a program in it",
        ["slice"],
        [([one.path], one.faults) for one in slices],
    )
    yield _counter(
        "gpuctl_slice_ended_programs",
        "Programs in it and below it that have ended",
        ["slice"],
        [([one.path], one.ended) for one in slices],
    )
    help = "Allocations that its memory_high let wait"
    yield _counter("gpuctl_slice_memory_waits", help, ["slice"], [([one.path], one.memory_waits) for one in slices])
    help = "Allocations that its memory_max refused, or its memory_min others"
    yield _counter(
        "gpuctl_slice_memory_refusals", help, ["slice"], [([one.path], one.memory_refusals) for one in slices]
    )
    for of, name, help in (
        ("some", "waiting", "Time in which a program in it or below it wanted more SMs than it had"),
        ("full", "stalled", "Time in which no program with work in it or below it had any SMs"),
    ):
        waited = [([one.path], sum(part.total_us for part in one.pressure if part.of == of) / 1e6) for one in slices]
        yield _counter(f"gpuctl_slice_{name}_seconds", help, ["slice"], waited)
    throttled = [([one.path], one.throttled) for one in slices]
    yield _counter("gpuctl_slice_throttled", "Times that it had used up its quota", ["slice"], throttled)
    help = "Time in which its quota was used up, on all GPUs together"
    yield _counter(
        "gpuctl_slice_throttled_seconds", help, ["slice"], [([one.path], one.throttled_us / 1e6) for one in slices]
    )
    help = "Work of programs in it and below it: each second times the SMs that the program had"
    yield _counter("gpuctl_slice_sm_seconds", help, ["slice"], [([one.path], one.totals.sm_seconds) for one in slices])
    help = "Energy that its programs and those below it used; absent: no GPU counts it"
    used = [([one.path], one.energy_joules) for one in slices if one.energy_joules is not None]
    yield _counter("gpuctl_slice_energy_joules", help, ["slice"], used)
    running = _Running(now.clients)
    launches = [([one.path], one.ended_launches + running.launches[one.path]) for one in slices]
    yield _counter("gpuctl_slice_launches", "Launches in it and below it", ["slice"], launches)
    evictions = [([one.path], one.ended_evictions + running.evictions[one.path]) for one in slices]
    help = "Running kernels in it and below it that gave SMs back"
    yield _counter("gpuctl_slice_evictions", help, ["slice"], evictions)
    yield from _latencies(slices)
    held = [([one.path, *_gpu(gpu)], running.memory[one.path, gpu.index]) for one in slices for gpu in now.devices]
    help = "Device memory that it and what is below it hold"
    yield _gauge("gpuctl_slice_memory_bytes", help, ["slice", *GPU], held)
    swapped = [([one.path, *_gpu(gpu)], running.swapped[one.path, gpu.index]) for one in slices for gpu in now.devices]
    help = "Device memory of it and what is below it that is on the host instead"
    yield _gauge("gpuctl_slice_swapped_bytes", help, ["slice", *GPU], swapped)


def _latencies(slices: Sequence[Slice]) -> Iterator[Metric]:
    counted, lately = [], []
    for one in slices:
        for latency in one.latencies:
            if latency.seconds == 0:
                counted.append(([one.path], latency.count))
                continue
            for quantile, us in (("0.5", latency.p50_us), ("0.99", latency.p99_us), ("0.999", latency.p999_us)):
                lately.append(([one.path, quantile], us / 1e6))
    yield _counter("gpuctl_slice_bursts", "Bursts and named requests in it and below it", ["slice"], counted)
    help = "How long bursts or named requests lately took, the last 10 s"
    yield _gauge("gpuctl_slice_latency_seconds", help, ["slice", "quantile"], lately)
    yield _took(slices)


def _took(slices: Sequence[Slice]) -> Metric:
    """Of slices in which something was counted; each has all bounds, so that they can be added up."""
    family = HistogramMetricFamily(
        "gpuctl_slice_burst_seconds", "How long bursts and named requests in it and below it took", labels=["slice"]
    )
    for one in slices:
        if not one.totals.latency:
            continue
        counts = {bucket.to_us: bucket.count for bucket in one.totals.latency}
        below = itertools.accumulate(counts.get(bound, 0) for bound in BOUNDS_US)
        buckets = [(floatToGoString(bound / 1e6), count) for bound, count in zip(BOUNDS_US, below, strict=True)]
        buckets.append(("+Inf", sum(counts.values())))
        family.add_metric([one.path], buckets, one.totals.latency_seconds)
    return family


class _Running:
    """What programs that run have, and counted since they came to their slices, summed up for each slice that they are
    in or below."""

    def __init__(self, clients: Sequence[Client]):
        self.launches: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.memory: Counter[tuple[str, int]] = Counter()  # by slice and GPU
        self.swapped: Counter[tuple[str, int]] = Counter()
        for client in clients:
            for path in _up(client.slice):
                for use in client.usage:
                    self.launches[path] += use.launches - use.launches_before
                    self.evictions[path] += use.evictions - use.evictions_before
                    self.memory[path, use.device] += use.memory
                    self.swapped[path, use.device] += use.swapped


def _up(path: str) -> Iterator[str]:
    """A slice and those above it."""
    while path not in ("", "/"):
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _gpu(device: Device) -> list[str]:
    return [str(device.index), device.uuid]


def _gauge(name: str, help: str, labels: list[str], samples: Iterable[tuple[list[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counter(name: str, help: str, labels: list[str], samples: Iterable[tuple[list[str], float]]) -> Metric:
    family = CounterMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT, such as 127.0.0.1:{PORT}")
    return host.strip("[]") or "0.0.0.0", int(port)


def _server(host: str, port: int, registry: CollectorRegistry) -> http.server.ThreadingHTTPServer:
    """Not start_http_server: that of Debian 12 does not say where it listens, and cannot be waited for."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]

    class Server(http.server.ThreadingHTTPServer):
        address_family = family

    return Server((str(address[0]), int(address[1])), MetricsHandler.factory(registry))


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpuctl-exporter", description="Metrics of gpuctl for Prometheus.")
    parser.add_argument(
        "--listen",
        type=_address,
        default=("127.0.0.1", PORT),
        metavar="HOST:PORT",
        help=f"where to serve /metrics (127.0.0.1:{PORT}); port 0: any free one, which is printed",
    )
    parser.add_argument("--socket", default=default_socket(), help="gpuctld's socket (GPUCTL_SOCKET)")
    options = parser.parse_args()
    registry = CollectorRegistry()
    registry.register(GpuctlCollector(options.socket))
    host, port = options.listen
    try:
        server = _server(host, port, registry)
    except OSError as error:
        print(f"gpuctl-exporter: cannot listen at {host}:{port}: {error.strerror or error}", file=sys.stderr)
        return 1
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{server.server_port}/metrics", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
