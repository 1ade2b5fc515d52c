"""Slices as directories, their settings as files: what cgroupfs is for cgroups.

    gpuctl-mount /run/gpuctl-slices
    echo 40 > /run/gpuctl-slices/batch/gpu.max

A process of the user who mounts: gpuctld decides by that user what is allowed. It asks gpuctld anew each time, so it
goes on when gpuctld comes back. man gpuctl-mount has the files.
"""

from __future__ import annotations

import dataclasses
import errno
import grp
import itertools
import os
import pwd
import re
import select
import signal
import stat
from collections.abc import Callable
from typing import Any

import pyfuse3
import trio

from . import amounts
from .daemon import SETTINGS, Daemon, connect
from .errors import Error, Refused, Unreachable
from .model import Slice

PREFIX = "gpu."  # of files, as names of slices may be the same as those of settings
PATIENCE_S = 5
WATCHED = ("events",)  # files that can be waited for
WATCH_EVERY_S = 0.5
READY = select.POLLIN | select.POLLOUT | select.POLLRDNORM | select.POLLWRNORM
CHANGED = select.POLLPRI | select.POLLERR  # since it was read, as Linux says it of files of cgroups
ON_GPU = ("granted", "memory", "memory_peak", "max_refusals")  # of what a slice has on a GPU
MOST = 4096  # bytes of a value that is written
ERRORS = {
    "PermissionDenied": errno.EPERM,
    "NoSuchSlice": errno.ENOENT,
    "NoSuchClient": errno.ESRCH,
    "SliceExists": errno.EEXIST,
    "SliceBusy": errno.EBUSY,
    "ReserveDoesNotFit": errno.ENOSPC,
}


def id_of(kind: str, name: str) -> int:
    """The number of a user or group, which may be given already. Names first: a user may be called 1000."""
    try:
        return pwd.getpwnam(name).pw_uid if kind == "user" else grp.getgrnam(name).gr_gid
    except KeyError:
        return int(name)


def join_of(text: str) -> str:
    """The list of who joins a slice, with numbers in place of the names of users and groups."""
    parts = [part.partition(":") for part in text.split(",")]
    return ",".join(
        f"{kind}:{id_of(kind, name)}" if kind in ("user", "group") else kind + colon + name
        for kind, colon, name in parts
    )


def value_of(key: str, text: str) -> int | str | None:
    """What is written into a file, as gpuctld wants it."""
    text = text.strip()
    if not text:
        raise ValueError("no value")
    if key in ("owner_uid", "owner_gid"):
        return id_of("user" if key == "owner_uid" else "group", text)
    if key == "join":
        return join_of(text)
    if key == "devices":
        return text
    if key in amounts.LIFTED and text in ("unlimited", "max"):
        return None
    if key in amounts.AMOUNTS and (amount := amounts.number_of(text)) is not None:
        return amount
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def text_of(value: object) -> str:
    return "unlimited" if value is None else str(value)


def stat_of(one: Slice) -> str:
    """All that a slice has beside its settings: a name and a number in each line."""

    def numbers(said: dict[str, object]) -> list[str]:
        return [f"{name} {value}" for name, value in said.items() if type(value) in (int, float)]

    lines = numbers({name: value for name, value in dataclasses.asdict(one).items() if name not in SETTINGS})
    for on in one.on_gpus:
        lines += numbers({f"gpu{on.device}.{name}": getattr(on, name) for name in ON_GPU})
    for latency in one.latencies:
        if latency.count:
            of = f"{latency.of}.{latency.seconds or 'all'}"
            lines += [f"{of}.{name} {getattr(latency, name)}" for name in ("count", "p50_us", "p99_us", "p999_us")]
    return "".join(line + "\n" for line in lines)


def pressure_of(one: Slice) -> str:
    """As Linux' files of pressure."""
    return "".join(
        f"{each.of} avg10={each.avg10:.2f} avg60={each.avg60:.2f} avg300={each.avg300:.2f} total={each.total_us}\n"
        for each in one.pressure
    )


EVENTS = ("memory_waits", "memory_refusals", "throttled", "faults", "ended")


def events_of(one: Slice) -> str:
    """As a cgroup's memory.events: how often each happened."""
    return "".join(f"{name} {getattr(one, name)}\n" for name in EVENTS)


def processes_of(daemon: Daemon, path: str) -> str:
    return "".join(f"{client.pid}\n" for client in daemon.clients(path))


READ_ONLY: dict[str, Callable[[Daemon, str], str]] = {
    "stat": lambda daemon, path: stat_of(daemon.slice(path)),
    "pressure": lambda daemon, path: pressure_of(daemon.slice(path)),
    "events": lambda daemon, path: events_of(daemon.slice(path)),
}


def read_file(daemon: Daemon, path: str, name: str) -> str:
    if name in READ_ONLY:
        return READ_ONLY[name](daemon, path)
    if name == "procs":
        return processes_of(daemon, path)
    one = daemon.slice(path)
    return text_of(amounts.value_of(one, name) if name in amounts.AMOUNTS else getattr(one, name)) + "\n"


def write_file(daemon: Daemon, path: str, name: str, text: str) -> None:
    if name == "procs":
        daemon.call("Move", pid=int(text), slice=path)
    else:
        daemon.handle(path).set(**{name: value_of(name, text)})


FILES = (*SETTINGS, "procs", *READ_ONLY)


@dataclasses.dataclass(frozen=True)
class Place:
    """A slice, or a file of it."""

    path: str  # of the slice; "/" is the root
    file: str = ""  # without its prefix

    def below(self, name: str) -> Place:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) in FILES:
            return Place(self.path, name.removeprefix(PREFIX))
        return Place(name if self.path == "/" else f"{self.path}/{name}")


@dataclasses.dataclass
class Open:
    place: Place
    text: bytes  # when it was opened, or read anew
    was_read: bool = False
    waits: Any = None  # pyfuse3's PollHandle of who waits for it to change


def failure(error: Exception) -> pyfuse3.FUSEError:
    if isinstance(error, Refused):
        return pyfuse3.FUSEError(ERRORS.get(error.name, errno.EINVAL))
    return pyfuse3.FUSEError(errno.EHOSTDOWN if isinstance(error, Unreachable) else errno.EINVAL)


class Slices(pyfuse3.Operations):  # type: ignore[misc]
    """Nothing is kept but which number stands for which place. gpuctld is asked in threads, so a call that waits for it
    holds up no other."""

    enable_writeback_cache = False

    def __init__(self, socket: str):
        super().__init__()
        self._socket = socket
        self._places = {pyfuse3.ROOT_INODE: Place("/")}
        self._numbers = {Place("/"): pyfuse3.ROOT_INODE}
        self._open: dict[int, Open] = {}
        self._handles = itertools.count(1)

    async def _ask(self, what: Callable[[Daemon], object]) -> object:
        def ask() -> object:
            with connect(self._socket, PATIENCE_S) as daemon:
                return what(daemon)

        try:
            return await trio.to_thread.run_sync(ask)
        except (Error, ValueError) as error:
            raise failure(error) from error

    def _number(self, place: Place) -> int:
        number = self._numbers.setdefault(place, pyfuse3.ROOT_INODE + len(self._numbers))
        self._places[number] = place
        return number

    async def _attributes(self, place: Place, known: Slice | None = None) -> pyfuse3.EntryAttributes:
        one = known or await self._ask(lambda daemon: daemon.slice(place.path))
        assert isinstance(one, Slice)
        found = pyfuse3.EntryAttributes()
        found.st_ino = self._number(place)
        writable = 0 if place.file in READ_ONLY else 0o200
        found.st_mode = stat.S_IFREG | 0o444 | writable if place.file else stat.S_IFDIR | 0o755
        found.st_nlink = 1 if place.file else 2
        found.st_uid = one.owner_uid
        found.st_gid = max(one.owner_gid, 0)
        found.st_size = 0
        found.entry_timeout = found.attr_timeout = 0
        return found

    async def getattr(self, inode: int, ctx: object = None) -> pyfuse3.EntryAttributes:
        return await self._attributes(self._places[inode])

    async def setattr(self, inode: int, attr: object, fields: object, fh: object, ctx: object) -> object:
        return await self.getattr(inode)  # a shell empties a file before it writes

    async def lookup(self, parent: int, name: bytes, ctx: object = None) -> pyfuse3.EntryAttributes:
        place = self._places[parent]
        if name in (b".", b".."):
            up = place.path.rpartition("/")[0] or "/"
            return await self._attributes(place if name == b"." else Place(up))
        try:
            return await self._attributes(place.below(os.fsdecode(name)))
        except pyfuse3.FUSEError as error:  # what can be no name is one of nothing
            raise pyfuse3.FUSEError(errno.ENOENT) if error.errno == errno.EINVAL else error from None

    async def opendir(self, inode: int, ctx: object) -> int:
        return inode

    async def readdir(self, inode: int, start: int, token: object) -> None:
        place = self._places[inode]
        slices = await self._ask(lambda daemon: daemon.slices())
        assert isinstance(slices, list)
        known = {one.path: one for one in slices}
        if place.path not in known:
            raise pyfuse3.FUSEError(errno.ENOENT)
        entries = [(PREFIX + file, known[place.path]) for file in FILES]
        for path, one in known.items():
            above, _, name = path.rpartition("/")
            if name and (above or "/") == place.path and not place.below(name).file:
                entries.append((name, one))
        for position, (name, one) in enumerate(entries[start:], start + 1):
            found = await self._attributes(place.below(name), one)
            if not pyfuse3.readdir_reply(token, os.fsencode(name), found, position):
                return

    async def mkdir(self, parent: int, name: bytes, mode: int, ctx: object) -> pyfuse3.EntryAttributes:
        place = self._places[parent].below(os.fsdecode(name))
        if place.file:
            raise pyfuse3.FUSEError(errno.EEXIST)
        await self._ask(lambda daemon: daemon.create(place.path))
        return await self._attributes(place)

    async def rmdir(self, parent: int, name: bytes, ctx: object) -> None:
        place = self._places[parent].below(os.fsdecode(name))
        if place.file:
            raise pyfuse3.FUSEError(errno.ENOTDIR)
        await self._ask(lambda daemon: daemon.handle(place.path).delete())

    async def open(self, inode: int, flags: int, ctx: object) -> pyfuse3.FileInfo:
        place = self._places[inode]
        text = b""
        if flags & os.O_ACCMODE != os.O_WRONLY:
            text = await self._text_of(place)
        elif place.file in READ_ONLY:
            raise pyfuse3.FUSEError(errno.EACCES)
        handle = next(self._handles)
        self._open[handle] = Open(place, text)
        return pyfuse3.FileInfo(fh=handle, direct_io=True)

    async def _text_of(self, place: Place) -> bytes:
        return str(await self._ask(lambda daemon: read_file(daemon, place.path, place.file))).encode()

    async def read(self, handle: int, offset: int, size: int) -> bytes:
        one = self._open[handle]
        if offset == 0:  # who waited reads it from the start
            if one.was_read and one.place.file in WATCHED:
                one.text = await self._text_of(one.place)
            one.was_read = True
        return one.text[offset : offset + size]

    async def _has_changed(self, one: Open) -> bool:
        try:
            return await self._text_of(one.place) != one.text
        except pyfuse3.FUSEError as error:  # its slice is gone; or gpuctld is, which comes back
            return bool(error.errno != errno.EHOSTDOWN)

    async def poll(self, inode: int, handle: int, waits: object, ctx: object) -> int:
        """Of pyfuse3 3.5. An older one does not call it, and the kernel says that every file is ready."""
        one = self._open[handle]
        if one.place.file not in WATCHED:
            return READY
        one.waits = waits or one.waits
        return READY | CHANGED if await self._has_changed(one) else READY

    async def watch(self) -> None:
        """Wakes who waits. gpuctld tells of no count, so it is asked while somebody does."""
        while True:
            await trio.sleep(WATCH_EVERY_S)
            for one in [one for one in self._open.values() if one.waits is not None]:
                if await self._has_changed(one) and one.waits is not None:
                    one.waits.notify()
                    one.waits = None

    async def write(self, handle: int, offset: int, data: bytes) -> int:
        place = self._open[handle].place
        if offset != 0 or len(data) > MOST:
            raise pyfuse3.FUSEError(errno.EINVAL)
        text = data.decode(errors="replace")
        await self._ask(lambda daemon: write_file(daemon, place.path, place.file, text))
        return len(data)

    async def release(self, handle: int) -> None:
        self._open.pop(handle, None)


async def serve(slices: Slices) -> None:
    """Until it is unmounted, or told to end."""

    async def until_told() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                pyfuse3.terminate()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_told)
        nursery.start_soon(slices.watch)
        await pyfuse3.main()
        nursery.cancel_scope.cancel()


def mount(directory: str, socket: str) -> None:
    """Returns when it is unmounted, or the process is told to end."""
    connect(socket, PATIENCE_S).close()
    if not os.path.isdir(directory):
        raise NotADirectoryError(f"{directory}: no such directory")
    slices = Slices(socket)
    pyfuse3.init(slices, directory, {"fsname=gpuctl", "subtype=gpuctl"})
    try:
        trio.run(serve, slices)
    finally:
        pyfuse3.close(unmount=True)
