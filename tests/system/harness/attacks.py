"""What an ordinary user can send to the daemon's socket, as fast as it can. Each method attack_NAME of Attacker goes on
for a short while and returns; what it keeps open stays open until the next attack begins.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import random
import select
import signal
import socket
import struct
import threading
import time

from bench.lab.client import take_page
from tests.system.harness import users

ROUND_S = 1
AT_ONCE = 16  # connections of one process, in most attacks
LONGEST = 64 << 10  # bytes of a message that the daemon takes from a stranger
LONGEST_OF_CLIENT = 4 << 20
ANY_PORT = (b"127.0.0.1", 0)  # a name in text would need a module that the attacker may not read
PAGE_BYTES = 57344
F_ADD_SEALS, F_SEAL_FUTURE_WRITE = 1033, 16  # fcntl.h
PUNCH_HOLE = 3  # with the size kept: linux/falloc.h
SYS_FUTEX = 202
GRANT_EPOCH, USAGE = 64 + 16, 64 + 64 * 16  # src/ipc/stub.h, in bytes: of the first device
WAITERS, MAPPINGS = 100, 500
GIVEN_UP_S = 0.08  # a little less than a page is kept that nobody takes: gpuctld/manager/pages_made.h
JUNK = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 0.5, 1e308, "", "/", "../..", "x" * 5000, "\0\n\x1b[2J",
    "\ud800", "\u00e9" * 300, [], [[]], [None] * 300, {}, {"a": {}}, {"": 0}, {"weight": "x"}, ["GPU-0"] * 40,
)  # fmt: skip
PARAMETERS = {
    "CreateSlice": ("path", "settings", "check"),
    "SetSlice": ("path", "settings", "check", "also"),
    "DeleteSlice": ("path", "recursive", "check"),
    "ApplySlices": ("slices", "dry_run"),
    "NoteSaved": (),
    "GetSlice": ("path",),
    "Explain": ("pid",),
    "ForgetKernels": ("uid",),
    "Move": ("pid", "slice"),
    "Kill": ("pid", "slice", "signal", "timeout_ms"),
    "Monitor": ("interval_ms",),
    "GetMpsPercentage": ("slice", "queues", "exe"),
    "Attach": ("slice", "device_uuids", "resumed", "mps_sms", "queues", "exe"),
    "ReportKernels": ("kernels", "stuck", "sms", "ms"),
    "SetHint": ("priority",),
    "HoldMemory": ("device", "bytes"),
    "ReportFault": ("device", "error", "name"),
    "ListSlices": (),
    "ListClients": (),
    "ListKernels": (),
    "GetStatus": (),
    "Advise": ("path", "settings"),
    "Record": (),
    "Events": ("slice", "after"),
    "WatchPressure": ("slice", "of", "stall_us", "window_us"),
    "GetUsage": ("since", "until", "slice", "uid", "gpu"),
}


def message(method, how="", **parameters):
    call = {"method": f"io.gpuctl.{method}", "parameters": parameters}
    if how:
        call[how] = True
    return json.dumps(call).encode() + b"\0"


class Attacker:
    """One process of one user. `others`: processes of other users, which it must not reach."""

    def __init__(self, path, uuid, own_slice, others, seed):
        self.path, self.uuid, self.own_slice, self.others = str(path), uuid, own_slice, others
        self.random = random.Random(seed)
        self.sent = {}  # messages, connections or writes into a page, by attack
        self.kept = []
        self.children = []

    @staticmethod
    def names():
        return sorted(name.removeprefix("attack_") for name in dir(Attacker) if name.startswith("attack_"))

    def attack(self, name, seconds):
        """Goes on for so long. Whatever the daemon refuses or closes is tried anew."""
        self.name, until = name, time.monotonic() + seconds
        while time.monotonic() < until:
            self.until = min(until, time.monotonic() + ROUND_S)
            with contextlib.suppress(OSError, EOFError, ValueError):
                getattr(self, "attack_" + name)()
            self.rest()

    def rest(self):
        """Lets go of everything."""
        for kept in self.kept:
            with contextlib.suppress(OSError, BufferError):
                kept.close()
        self.kept.clear()
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.children.clear()

    # Tools.

    def goes_on(self):
        return time.monotonic() < self.until

    def count(self, number=1):
        self.sent[self.name] = self.sent.get(self.name, 0) + number

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        self.kept.append(connection)
        connection.settimeout(ROUND_S)
        connection.connect(self.path)
        return connection

    def flood(self, *messages, connections=AT_ONCE, read=False):
        """Sends the messages over and over, on several connections by turns."""
        sockets = [self.connect() for _ in range(connections)]
        for each in sockets:
            each.settimeout(0.02)
        while self.goes_on() and sockets:
            for each in list(sockets):
                data = self.random.choice(messages)
                try:
                    each.sendall(data)
                    self.count(data.count(b"\0"))
                    if read:
                        each.recv(1 << 16)
                except TimeoutError:
                    continue
                except OSError:
                    sockets.remove(each)

    def join(self, path="/"):
        """Attaches as a program does. Returns the connection, the page, the eventfd and the page's file; ValueError if
        it is refused.
        """
        connection = self.connect()
        answer, kicks = b"NoPage", []
        while b"NoPage" in answer and self.goes_on():
            data, files = self.ask(connection, "MakePage")
            if len(files) != 1:
                raise ValueError(data)
            page = take_page(files[0].fileno())
            self.kept.append(page)
            answer, kicks = self.ask(connection, "Attach", slice=path, device_uuids=[self.uuid], resumed=False)
        if len(kicks) != 1:
            raise ValueError(answer)
        return connection, page, kicks[0], files[0]

    def ask(self, connection, method, **parameters):
        """The answer, and the files that came with it."""
        connection.sendall(message(method, **parameters))
        data, ancillary, _, _ = connection.recvmsg(65536, socket.CMSG_LEN(32))
        self.count()
        fds = array.array("i")
        for _, _, content in ancillary:
            fds.frombytes(content)
        files = [os.fdopen(fd, "r+b", buffering=0) for fd in fds]
        self.kept += files
        return data, files

    def members(self, count, path="/"):
        """As many as the daemon takes."""
        joined = []
        with contextlib.suppress(OSError, ValueError):
            while len(joined) < count and self.goes_on():
                joined.append(self.join(path))
        return joined

    def flood_as_member(self, make, path="/"):
        connection = self.join(path)[0]
        connection.settimeout(0.02)
        while self.goes_on():
            with contextlib.suppress(TimeoutError):
                data = make()
                connection.sendall(data)
                self.count(data.count(b"\0"))

    # Messages.

    def attack_pipelined(self):
        self.flood(message("GetStatus") * 200, message("ListClients") * 50, message("ListSlices") * 50, read=True)

    def attack_oneway(self):
        self.flood(message("ListSlices", "oneway") * 400, message("Monitor", "oneway", interval_ms=100) * 400)

    def attack_pages_made(self):
        """Each has a call that follows wait for no budget."""
        self.flood(message("MakePage", "oneway") * 100)

    def attack_replies_unread(self):
        self.flood(message("ListSlices") * 400, message("GetSlice", path="/") * 400, message("ListKernels") * 400)

    def attack_streams_unread(self):
        self.flood(message("Monitor", "more", interval_ms=100), message("Record", "more"), connections=4 * AT_ONCE)

    def attack_half_messages(self):
        self.flood(b"{", b'{"method":"io.gpuctl.', b" " * 4000, b'{"method":"' + b"x" * 60000, connections=4 * AT_ONCE)
        self.count()

    def attack_longest(self):
        self.flood(message("GetSlice", path="x" * (LONGEST - 200)), message("GetSlice", path="x" * 2 * LONGEST))

    def attack_deep(self):
        deep = LONGEST // 8
        nested = b'{"method":"io.gpuctl.GetSlice","parameters":{"path":'
        self.flood(
            b"[" * deep + b"\0", b'{"a":' * deep + b"\0", nested + b"[" * deep + b"]" * deep + b"}}\0",
            b"{" + b",".join(b'"%d":0' % i for i in range(6000)) + b"}\0",
            b'{"method":1e999999}\0', b"\xff\xfe\0" * 900,
        )  # fmt: skip

    def attack_wrong_types(self):
        def some():
            method = self.random.choice(list(PARAMETERS))
            return message(method, **{name: self.random.choice(JUNK) for name in PARAMETERS[method]})

        self.flood(b"".join(some() for _ in range(100)), read=True)

    def attack_descriptors(self):
        """Descriptors that nobody asked for go with each message."""
        fds = array.array("i", [0] * 200)
        connection = self.connect()
        while self.goes_on():
            connection.sendmsg([message("GetStatus")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            connection.recv(1 << 16)
            self.count()

    def attack_lingering(self):
        """Descriptors whose last close waits for an hour. They are passed by a child that ends, which does not wait."""
        server = socket.socket()
        self.kept.append(server)
        server.settimeout(ROUND_S)
        server.bind(ANY_PORT)
        server.listen()
        while self.goes_on():
            child = os.fork()
            if child == 0:
                self.pass_lingering(server.getsockname()[1])
            os.waitpid(child, 0)
            self.kept.append(server.accept()[0])
            self.count()

    def pass_lingering(self, port):
        """Ends this process: who closes the socket, or lets Python do so, would wait."""
        lingers = socket.socket()
        try:
            self.pass_along(lingers, port)
        finally:
            os._exit(0)

    def pass_along(self, lingers, port):
        lingers.connect((ANY_PORT[0], port))
        connection = self.connect()
        lingers.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
        lingers.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while lingers.send(b"x" * 65536):
                pass
        call = message("GetStatus")[: self.random.choice((10, 1000))]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [lingers.fileno()]))]
        connection.sendmsg([call], rights, self.random.choice((0, socket.MSG_OOB)))

    def attack_members(self):
        """Objects of very many members, from one who may send long messages."""
        members = ",".join(f'"{i * 2654435761 % 2**32:x}":0' for i in range(60000))
        self.flood_as_member(lambda: b'{"method":"io.gpuctl.GetSlice","parameters":{' + members.encode() + b"}}\0")

    # Connections.

    def attack_left_behind(self):
        """Connections that are filled with what is dear, and left."""
        while self.goes_on():
            connection = self.connect()
            connection.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                while True:
                    connection.sendall(message("ListSlices", self.random.choice(("", "oneway"))) * 100)
                    self.count(100)
            connection.close()

    def attack_connections(self):
        with contextlib.suppress(OSError):
            while self.goes_on():
                self.connect()
                self.count()
        time.sleep(max(0, self.until - time.monotonic()))

    def attack_hang_ups(self):
        """Connections that end as soon as something is asked."""
        while self.goes_on():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.path)
                connection.sendall(message("ListClients") * self.random.choice((1, 9)))
                if self.random.random() < 0.5:
                    connection.shutdown(self.random.choice((socket.SHUT_RD, socket.SHUT_WR)))
                self.count()

    def attack_attach_storm(self):
        while self.goes_on():
            for path in ("/", self.own_slice):
                self.join(path)
                self.rest()

    def attack_attached_many(self):
        joined = self.members(300, self.random.choice(("/", self.own_slice)))
        for connection, *_ in joined:
            connection.sendall(message("Attach", slice="/", device_uuids=[self.uuid], resumed=True) * 20)
            self.count()
        time.sleep(max(0, self.until - time.monotonic()))

    # What owners and programs may do.

    def attack_slices(self):
        def some():
            path = f"{self.own_slice}/{self.random.randrange(200)}"
            settings = {"weight": self.random.randrange(1, 1000), "priority": self.random.randrange(-100, 100)}
            method = self.random.choice(("CreateSlice", "CreateSlice", "DeleteSlice", "SetSlice"))
            return message(method, path=path, **({} if method == "DeleteSlice" else {"settings": settings}))

        self.flood(*(b"".join(some() for _ in range(20)) for _ in range(20)), connections=4, read=True)

    def attack_kernel_texts(self):
        def some():
            text = self.random.randbytes(300).hex()
            kernels = [{"name": f"{text}{i}", "module": text, "form": "opaque", "reason": text, "launches": i,
                        "registers": i, "registers_original": i, "per_sm": 1, "block_task_ns": 2**60}
                       for i in range(self.random.choice((1, 200, 1500)))]  # fmt: skip
            return message("ReportKernels", "oneway", kernels=kernels)[:LONGEST_OF_CLIENT]

        self.flood_as_member(some)

    def attack_hints(self):
        self.flood_as_member(lambda: message("SetHint", "oneway", priority=self.random.randrange(-100, 1)) * 50)

    def attack_memory(self):
        self.flood_as_member(
            lambda: message("HoldMemory", "oneway", device=0, bytes=self.random.getrandbits(62)) * 50, self.own_slice
        )

    def attack_faults(self):
        self.flood_as_member(lambda: message("ReportFault", "oneway", device=0, error=719, name="x" * 300) * 50)

    def attack_monitors(self):
        self.members(20)
        readers = [self.connect() for _ in range(2 * AT_ONCE)]
        for reader in readers:
            reader.sendall(message("Monitor", "more", interval_ms=100))
            reader.settimeout(0.02)
        while self.goes_on():
            for reader in readers:
                with contextlib.suppress(TimeoutError):
                    self.count(reader.recv(1 << 20).count(b"\0"))

    def attack_kill(self):
        """Programs of others, which the daemon must refuse, and an own one that does not end."""
        child = os.fork()
        if child == 0:
            try:
                users.end_with_parent()
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                self.join()
                signal.pause()
            finally:
                os._exit(0)
        self.children.append(child)
        theirs = [message("Kill", pid=pid, signal="KILL", timeout_ms=0) for pid in self.others]
        theirs += [message("Kill", slice=path, signal="KILL") for path in ("ls", "tenant")]
        self.flood(b"".join(theirs), message("Kill", pid=child, signal="USR1", timeout_ms=60000), connections=AT_ONCE)

    def attack_endings(self):
        """Programs that ignore signals, of which the end is wanted again and again, by connections that hang up. They
        have a slice of their own: others of this user attack from its slice, and would be ended too.
        """
        path = f"{self.own_slice}/ends-{os.getpid()}"
        with self.connect() as connection:
            connection.sendall(message("CreateSlice", path=path, settings={}))
            connection.recv(1 << 16)
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    users.end_with_parent()
                    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                    self.join(path)
                    signal.pause()
                finally:
                    os._exit(0)
            self.children.append(child)
        while self.goes_on():
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(self.path)
                connection.sendall(message("Kill", slice=path, signal="USR1", timeout_ms=60000))
                self.count()

    # The page.

    def attack_pages_kept(self):
        """A program attaches, keeps the page, hangs up, and attaches again."""
        while self.goes_on():
            connection, page, *_ = self.join()
            page[:] = b"\1" * PAGE_BYTES
            connection.close()
            self.count()

    def attack_watches(self):
        """Hundreds look at an eventfd that the daemon drains, and at a connection on which it answers."""
        connection, _, kick, _ = self.join()
        for _ in range(900):
            watch = select.epoll()
            self.kept.append(watch)
            for file in (connection, kick):
                watch.register(file.fileno(), select.EPOLLIN | select.EPOLLOUT)
        connection.settimeout(0.1)
        while self.goes_on():
            for _ in range(20):
                kick.write(b"\1\0\0\0\0\0\0\0")
            with contextlib.suppress(TimeoutError):
                connection.sendall(message("GetStatus") * 10)
                connection.recv(1 << 16)
            self.count()

    def attack_waiters(self):
        """Very many threads wait for the next grant."""
        _, page, kick, _ = self.join()
        epoch = (ctypes.c_uint32 * (PAGE_BYTES // 4)).from_buffer(page)
        libc, over = ctypes.CDLL(None), []

        def wait():
            while not over:
                seen = epoch[GRANT_EPOCH // 4]
                libc.syscall(SYS_FUTEX, ctypes.byref(epoch, GRANT_EPOCH), 0, seen, struct.pack("qq", 0, 10**8), None, 0)

        threads = [threading.Thread(target=wait, daemon=True) for _ in range(WAITERS)]
        for thread in threads:
            thread.start()
        try:
            self.demand_of(page, kick)
        finally:
            over.append(True)
            for thread in threads:
                thread.join()

    def demand_of(self, page, kick):
        while self.goes_on():
            page[USAGE : USAGE + 4] = self.random.choice((0, 1, 8)).to_bytes(4, "little")
            kick.write(b"\1\0\0\0\0\0\0\0")
            self.count()
            time.sleep(0.001)

    def attack_holes(self):
        """Holes in a page that is mapped very often, once it is taken and before."""
        _, _, kick, file = self.join()
        libc = ctypes.CDLL(None)

        def punch(file):
            libc.fallocate(file.fileno(), PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(PAGE_BYTES))

        self.kept += [mmap.mmap(file.fileno(), PAGE_BYTES, prot=mmap.PROT_READ) for _ in range(MAPPINGS)]
        while self.goes_on():
            for _ in range(20):
                punch(file)
                kick.write(b"\1\0\0\0\0\0\0\0")
            with contextlib.suppress(OSError, ValueError), self.connect() as connection:
                _, [fresh] = self.ask(connection, "MakePage")
                until = time.monotonic() + GIVEN_UP_S
                maps = []
                while time.monotonic() < until:
                    maps.append(mmap.mmap(fresh.fileno(), PAGE_BYTES))
                while time.monotonic() < until + GIVEN_UP_S / 4:
                    punch(fresh)
            self.count(20)

    def attack_page(self):
        """Random words, counters that jump, and wake-ups without end."""
        joined = self.members(8, self.random.choice(("/", self.own_slice)))
        for _, _, kick, _ in joined:
            os.set_blocking(kick.fileno(), True)
        while self.goes_on() and joined:
            for _, page, kick, _ in joined:
                how = self.random.randrange(4)
                if how == 0:
                    page[:] = self.random.randbytes(PAGE_BYTES)
                elif how == 1:
                    page[:] = self.random.choice((b"\0", b"\xff", b"\x01")) * PAGE_BYTES
                else:
                    for _ in range(50):
                        at = 4 * self.random.randrange(PAGE_BYTES // 4)
                        page[at : at + 4] = self.random.randbytes(4)
                for _ in range(20):
                    kick.write(b"\1\0\0\0\0\0\0\0")
                self.count()

    def attack_demand(self):
        """A demand that comes and goes and SMs that are never given back: a page that looks sound."""
        joined = self.members(8)
        while self.goes_on() and joined:
            for _, page, kick, _ in joined:
                page[USAGE : USAGE + 4] = self.random.choice((0, 1, 8)).to_bytes(4, "little")
                page[USAGE + 4 : USAGE + 8] = (8).to_bytes(4, "little")
                kick.write(b"\1\0\0\0\0\0\0\0")
                self.count()

    def attack_page_size(self):
        """A page that is to change its size or to be sealed, and an eventfd that is kept full."""
        for _, _, kick, file in self.members(4):
            for size in (0, 4096, 1 << 30):
                with contextlib.suppress(OSError):
                    file.truncate(size)
                    raise AssertionError("the page changed its size")
            with contextlib.suppress(OSError):
                fcntl.fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
            with contextlib.suppress(OSError):
                kick.write(b"\xfe" + b"\xff" * 7)
            self.count()
