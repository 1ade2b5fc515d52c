"""A daemon that lies: a program computes what it computes plain, and asks a daemon that refuses it less and less."""

import array
import contextlib
import fcntl
import json
import mmap
import os
import pathlib
import random
import re
import socket
import struct
import threading
import time

from tests.system.harness import instance

LIBRARY = instance.BUILD / "src/libgpuslice/libgpuslice.so"
HOSTILE = instance.DRIVER_PROGRAMS / "hostile"
STUB_H = pathlib.Path(__file__).resolve().parents[3] / "src/ipc/stub.h"
VERSION = int(re.search(r"kStubVersion = (\d+)", STUB_H.read_text())[1])
MAGIC, STUB_BYTES, FILE_BYTES = 0x67637462, 6336, 57344
GRANTS_AT, GRANT_BYTES, DEVICES = 64, 64, 16
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 2, 4
UNLIMITED = 0x00FFFFFF


class Page:
    """A stub page as the daemon makes it, with what is wrong in it."""

    def __init__(self, magic=MAGIC, version=VERSION, size=STUB_BYTES, devices=1, file_bytes=FILE_BYTES, sealed=True):
        self.file = os.memfd_create("page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, file_bytes)
        self.memory = mmap.mmap(self.file, file_bytes)
        self.put(0, struct.pack("6I", magic, version, size, devices, 1, 1))
        for device in range(DEVICES):
            self.put(GRANTS_AT + device * GRANT_BYTES, struct.pack("I", UNLIMITED))
        if sealed:
            fcntl.fcntl(self.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)

    def put(self, at, data):
        self.memory[at : at + len(data)] = data

    def scribble(self, rng):
        """Something else in every word of a grant, but for the client's own limits."""
        at = GRANTS_AT
        self.put(at, struct.pack("I", rng.choice([0, 1, 7, UNLIMITED, 0xFFFFFFFF, rng.getrandbits(32)])))
        self.put(at + 16, rng.randbytes(GRANT_BYTES - 16))

    def let_go(self):
        self.put(GRANTS_AT, struct.pack("I", UNLIMITED))
        self.put(GRANTS_AT + 16, bytes(GRANT_BYTES - 16))


NO_SUCH_METHOD = b'{"error": "org.varlink.service.MethodNotFound", "parameters": {"method": ""}}\0'


class FakeDaemon:
    """Answers Attach as `answer` says, which returns a reply and descriptors; keeps these calls, and their times.
    `percentage`: what it says to GetMpsPercentage, as an older daemon if nothing is given; None: nothing; else the
    reply, or what makes it of the call. `hangs_up`: it closes the connection then."""

    def __init__(self, path, answer, percentage=NO_SUCH_METHOD, hangs_up=False):
        self.answer, self.percentage, self.hangs_up = answer, percentage, hangs_up
        self.calls = []
        self.times = []
        self.asked = False
        self.kept = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.kept.append(connection)
                self.serve_one(connection)

    def serve_one(self, connection):
        """Up to its Attach, or its end."""
        while message := self.next_message(connection):
            if b"GetMpsPercentage" in message:
                said = self.percentage(message) if callable(self.percentage) else self.percentage
                connection.sendall(said or b"")
                if self.hangs_up:
                    return connection.shutdown(socket.SHUT_RDWR)
                continue
            self.asked = True
            if b"MakePage" in message:
                reply, files = self.answer()
                send(connection, success(stub_bytes=FILE_BYTES), files[:1] or [Page().file])
                continue
            self.times.append(time.monotonic())
            self.calls.append(json.loads(message[:-1])["parameters"])
            send(connection, reply, files[1:])
            return

    def next_message(self, connection):
        message = b""
        while not message.endswith(b"\0"):
            more = connection.recv(65536)
            if not more:
                return None
            message += more
        return message

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for connection in self.kept:
            connection.close()


def send(connection, reply, files):
    control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    connection.sendmsg([reply], control)


def success(**parameters):
    return json.dumps({"parameters": parameters}).encode() + b"\0"


def attached(**more):
    return success(**{"slice": "s", "latency_target_us": 1, "block_target_us": 20, **more})


class HostileDaemon(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.debug = self.scratch / "debug"
        self.env = {**self.env_of_others(), "GPUCTL_SLICE": "s", "GPUSLICE_DEBUG": str(self.debug)}
        self.env["LD_PRELOAD"] = ":".join(filter(None, (self.env.get("LD_PRELOAD"), str(LIBRARY))))

    def fake(self, answer):
        daemon = FakeDaemon(self.socket, answer)
        self.addCleanup(daemon.close)
        return daemon

    def kick(self):
        return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def assertRight(self, answer, said):
        """A program whose daemon answers so is right, and says that in its trace."""
        self.debug.unlink(missing_ok=True)
        self.socket.unlink(missing_ok=True)
        daemon = FakeDaemon(self.socket, answer)
        try:
            program = self.start(HOSTILE, "gpu")
            self.assertEqual((program.wait(), program.out()), (0, "0 wrong\n"), program.err())
        finally:
            daemon.close()
        self.assertTrue(daemon.asked)
        self.assertIn(said, self.debug.read_text())

    def test_pages_that_are_not_ours(self):
        for wrong, said in (
            ({"version": VERSION + 1}, "another version"),
            ({"version": VERSION - 1}, "another version"),
            ({"size": STUB_BYTES + 64}, "another version"),
            ({"magic": 0}, "magic"),
            ({"devices": DEVICES + 1}, "more devices"),
            ({"file_bytes": 4096}, "wrong size"),
            ({"sealed": False}, "may shrink"),
        ):
            with self.subTest(**wrong):
                self.assertRight(lambda wrong=wrong: (attached(), [Page(**wrong).file, self.kick()]), said)

    def test_answers_that_are_not_ours(self):
        blocking = os.eventfd(0, os.EFD_CLOEXEC)
        self.addCleanup(os.close, blocking)
        for answer, said in (
            (lambda: (b"no json\0", []), ""),
            (lambda: (attached(), [Page().file]), "Attach: expected a file descriptor"),
            (lambda: (attached(), [self.kick(), Page().file]), "stub page"),
            (lambda: (attached(), [Page().file, blocking]), "could block"),
            (lambda: (attached(latency_target_us=-1), [Page().file, self.kick()]), "latency_target_us"),
            (lambda: (attached(block_target_us=2**62), [Page().file, self.kick()]), "block_target_us"),
            (lambda: (attached(block_target_us="x"), [Page().file, self.kick()]), "block_target_us"),
        ):
            with self.subTest(said=said):
                self.assertRight(answer, said)

    def test_grants_of_random_words(self):
        """While kernels run, all that the daemon may write changes; at last the program may have all SMs."""
        page = Page()
        self.fake(lambda: (attached(), [page.file, self.kick()]))
        rng = random.Random(22)
        # "N:M": the modules of these seeds, with all results checked
        program = self.start(instance.BUILD / "tests/random/random-kernels", "0:6")
        for _ in range(3000):
            page.scribble(rng)
            if program.process.poll() is not None:
                break
            time.sleep(0.001)
        page.let_go()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertIn("attached to slice s", self.debug.read_text())

    def test_a_daemon_that_refuses_is_asked_less_and_less(self):
        daemon = self.fake(lambda: (b'{"error": "io.gpuctl.NoSuchSlice", "parameters": {}}\0', []))
        program = self.start(instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
        instance.wait_until(lambda: len(daemon.times) >= 6, "six tries")
        program.process.terminate()
        pauses = [after - before for before, after in zip(daemon.times, daemon.times[1:], strict=False)]
        # 0.2 s, doubled each time, less a random part of up to a half; a busy machine makes them only longer
        for number, pause in enumerate(pauses[:5]):
            self.assertGreater(pause, 0.1 * 2**number - 0.05, pauses)

    def test_a_percentage_and_queues_that_are_none(self):
        """Nor does a program wait for them for long."""
        wrong = (0, 10001, -1, "50", 5e300, [])
        answers = [success(**{name: value}) for name in ("hundredths", "queues") for value in wrong]
        for percentage in (None, b"\0", b"{}\0", *answers):
            with self.subTest(percentage):
                self.debug.unlink(missing_ok=True)
                self.socket.unlink(missing_ok=True)
                daemon = FakeDaemon(self.socket, lambda: (attached(), [Page().file, self.kick()]), percentage)
                self.addCleanup(daemon.close)
                program = self.start(instance.BUILD / "tests/random/random-kernels", "0:1")
                self.assertEqual(program.wait(), 0, program.err())
                self.assertIn("attached to slice s", self.debug.read_text())
                self.assertNotRegex(self.debug.read_text(), "MPS is to keep|hardware queues")

    def test_a_new_daemon_is_found(self):
        """A daemon that takes the place of one that refused."""
        daemon = FakeDaemon(self.socket, lambda: (b'{"error": "io.gpuctl.NoSuchSlice", "parameters": {}}\0', []))
        program = self.start(instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
        instance.wait_until(lambda: len(daemon.times) >= 3, "three tries")
        daemon.close()
        self.socket.unlink()
        page = Page()
        self.fake(lambda: (attached(), [page.file, self.kick()]))
        instance.wait_until(lambda: "attached to slice s" in self.debug.read_text(), "the program to be attached")
        program.process.terminate()


if __name__ == "__main__":
    instance.main()
