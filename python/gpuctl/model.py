"""What gpuctld says, as values. io.gpuctl(7) says what each field means. A field of a newer daemon that is not here is
left out; one that an older daemon does not say has its default."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


def read(kind: type[T], said: dict[str, Any]) -> T:
    """One of the types below, from what the daemon said."""
    names = {one.name for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in said.items() if name in names})


@dataclass(frozen=True)
class Device:
    """A GPU. mode: "mps" (programs side by side), "time-sliced" (by turns) or "software"."""

    index: int = 0
    name: str = ""
    uuid: str = ""
    kind: str = ""
    sms: int = 0
    memory_bytes: int = 0
    mode: str = ""


@dataclass(frozen=True)
class Latency:
    """How long bursts or requests took: in the last `seconds`, or all of them (0)."""

    of: str = ""
    seconds: int = 0
    count: int = 0
    p50_us: float = 0
    p99_us: float = 0
    p999_us: float = 0


@dataclass(frozen=True)
class LatencyBucket:
    """How many bursts or requests took less than to_us, and no less than half of it."""

    to_us: float = 0
    count: int = 0


@dataclass(frozen=True)
class SliceTotals:
    """What programs in a slice and below it had, since it was made or gpuctld started."""

    sm_seconds: float = 0
    latency_seconds: float = 0
    latency: list[LatencyBucket] = field(default_factory=list)


@dataclass(frozen=True)
class Pressure:
    """For which part of the time work waited for SMs, in per cent. of: "some" or "full"."""

    of: str = ""
    avg10: float = 0
    avg60: float = 0
    avg300: float = 0
    total_us: int = 0


@dataclass(frozen=True)
class SliceOnGpu:
    """What is in force for a slice on one GPU; None: nothing limits it. seen: its programs see the GPU. same: no amount
    differs by GPU. And what it has there: SMs granted, bytes held now and at most, refusals by its own memory_max."""

    device: int = 0
    reserve: int = 0
    max: int | None = None
    memory_max: int | None = None
    seen: bool | None = None
    memory_high: int | None = None
    memory_min: int | None = None
    same: bool | None = None
    granted: int | None = None
    memory: int | None = None
    memory_peak: int | None = None
    max_refusals: int | None = None
    driver_max: int | None = None
    quota: str | None = None
    burst: str | None = None


@dataclass(frozen=True)
class Slice:
    """A node of the tree: its settings, what is in force of them (effective_...), and what it has now."""

    path: str = ""
    reserve: int = 0
    reserve_per_gpu: str = "none"
    reserve_mode: str = ""
    reserve_hold_ms: int = 0
    max: int | None = None
    max_per_gpu: str = "none"
    quota: str = "none"
    burst: str = "none"
    weight: int = 100
    priority: int = 0
    isolation: str = "auto"
    memory_min: int = 0
    memory_min_per_gpu: str = "none"
    memory_max: int | None = None
    memory_max_per_gpu: str = "none"
    memory_high: int | None = None
    memory_high_per_gpu: str = "none"
    latency: str = "none"
    policy: str = ""
    frozen: str = "no"
    owner_uid: int = 0
    owner_gid: int = -1
    join: str = "none"
    devices: str = "all"
    granted: int = 0
    demand: int = 0
    clients: int = 0
    faults: int = 0
    ended: int = 0
    ended_launches: int = 0
    ended_evictions: int = 0
    memory_waits: int = 0
    memory_refusals: int = 0
    energy_joules: float | None = None
    latencies: list[Latency] = field(default_factory=list)
    pressure: list[Pressure] = field(default_factory=list)
    totals: SliceTotals = field(default_factory=SliceTotals)
    throttled: int = 0
    throttled_us: int = 0
    effective_reserve: int | None = None
    effective_reserve_mode: str | None = None
    effective_max: int | None = None
    effective_priority: int | None = None
    effective_isolation: str | None = None
    effective_memory_max: int | None = None
    effective_memory_high: int | None = None
    effective_frozen: str | None = None
    quota_now: str | None = None
    latency_now: str | None = None
    isolation_now: str | None = None
    on_gpus: list[SliceOnGpu] = field(default_factory=list)


@dataclass(frozen=True)
class ClientUsage:
    """A program on one GPU. Counters start with the program."""

    device: int = 0
    granted: int = 0
    demand: int = 0
    holding: int = 0
    outstanding: int = 0
    launches: int = 0
    block_tasks: int = 0
    evictions: int = 0
    evict_us_last: float = 0
    evict_us_mean: float = 0
    evict_us_max: float = 0
    busy_us: int = 0
    memory: int = 0
    in_force: str = ""
    mode: str = ""
    common_sms: int = 0
    sms_told: int = 0
    mps_sms: int = 0
    priority_rank: int = 0
    priorities: int = 1
    time_slice: str = ""
    time_slice_us: int = 0
    channel_groups: int = 0
    latency_us_last: float = 0
    latency_us_log2: list[int] = field(default_factory=list)
    evict_us_log2: list[int] = field(default_factory=list)
    latency: list[Latency] = field(default_factory=list)
    swapped: int = 0
    launches_before: int = 0
    evictions_before: int = 0


@dataclass(frozen=True)
class Client:
    """A program in a slice. `usage` has an entry for each GPU that it sees."""

    pid: int = 0
    uid: int = 0
    command: str = ""
    slice: str = ""
    state: str = ""
    isolated: bool = False
    swap_now: str | None = None
    usage: list[ClientUsage] = field(default_factory=list)


@dataclass(frozen=True)
class Mps:
    """An MPS, of one isolated slice or (None) of all others. state: "ours" (gpuctld started it), "others", "ready",
    "failed" or "none"."""

    slice: str | None = None
    state: str = ""
    programs: int = 0


@dataclass(frozen=True)
class Status:
    """The daemon itself."""

    version: str = ""
    devices: list[Device] = field(default_factory=list)
    slices: int = 0
    clients: int = 0
    uptime_s: int = 0
    notes: list[str] = field(default_factory=list)
    faults: int = 0
    mps: list[Mps] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot:
    """All of it at one instant (time_ns, of CLOCK_MONOTONIC)."""

    time_ns: int = 0
    devices: list[Device] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)


def read_latencies(said: list[dict[str, Any]]) -> list[Latency]:
    return [read(Latency, one) for one in said]


def read_totals(said: dict[str, Any]) -> SliceTotals:
    latency = [read(LatencyBucket, one) for one in said.get("latency", [])]
    return dataclasses.replace(read(SliceTotals, said), latency=latency)


def read_slice(said: dict[str, Any]) -> Slice:
    return dataclasses.replace(
        read(Slice, said),
        latencies=read_latencies(said.get("latencies", [])),
        pressure=[read(Pressure, one) for one in said.get("pressure", [])],
        totals=read_totals(said.get("totals", {})),
        on_gpus=[read(SliceOnGpu, one) for one in said.get("on_gpus", [])],
    )


def read_usage(said: dict[str, Any]) -> ClientUsage:
    return dataclasses.replace(read(ClientUsage, said), latency=read_latencies(said.get("latency", [])))


def read_client(said: dict[str, Any]) -> Client:
    return dataclasses.replace(read(Client, said), usage=[read_usage(one) for one in said.get("usage", [])])


def read_status(said: dict[str, Any]) -> Status:
    return dataclasses.replace(
        read(Status, said),
        devices=[read(Device, one) for one in said.get("devices", [])],
        mps=[read(Mps, one) for one in said.get("mps", [])],
    )


def read_snapshot(said: dict[str, Any]) -> Snapshot:
    return Snapshot(
        time_ns=said.get("time_ns", 0),
        devices=[read(Device, one) for one in said.get("devices", [])],
        slices=[read_slice(one) for one in said.get("slices", [])],
        clients=[read_client(one) for one in said.get("clients", [])],
    )
