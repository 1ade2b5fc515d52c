"""The Python package gpuctl: it says and does what the interface has."""

import contextlib
import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import bench.lab.client  # noqa: F401 - where the package is
import gpuctl
from gpuctl import amounts, model, varlink
from tests.system.harness import instance

INTERFACE = instance.pathlib.Path(__file__).resolve().parents[3] / "src/ipc/io.gpuctl.varlink"

CONNECT = 42  # the number of the system call


def fields_of(name):
    """Of a type of the interface: the names of its fields."""
    text = "".join(line for line in INTERFACE.read_text().splitlines(True) if not line.startswith("#"))
    body = re.search(rf"^type {name} \((.*?)\n\)", text, re.MULTILINE | re.DOTALL).group(1)
    return re.findall(r"^\s*(\w+):", body, re.MULTILINE)


class Model(unittest.TestCase):
    def test_has_each_field_of_the_interface(self):
        for name in (
            "Device",
            "Latency",
            "LatencyBucket",
            "SliceTotals",
            "Mps",
            "Slice",
            "SliceOnGpu",
            "ClientUsage",
            "Client",
        ):
            with self.subTest(name):
                self.assertEqual([one.name for one in dataclasses.fields(getattr(model, name))], fields_of(name))

    def test_its_version_is_that_of_gpuctl(self):
        root = INTERFACE.parents[2]
        (version,) = re.findall(r"^version = \"(.*)\"$", (root / "python/pyproject.toml").read_text(), re.MULTILINE)
        self.assertIn(f"version: '{version}',", (root / "meson.build").read_text())

    def test_a_field_of_a_newer_daemon_is_left_out_and_one_that_an_older_one_lacks_has_its_default(self):
        self.assertEqual(model.read(model.Device, {"index": 3, "colour": "red"}), model.Device(index=3))


class Connecting(unittest.TestCase):
    def full_queue(self, held, path):
        """A socket that listens, and has no place for one more."""
        listener = held.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(0)
        held.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
        return listener

    def test_goes_on_after_a_signal(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
            listener = self.full_queue(held, f"{folder}/s")
            handled = threading.Event()
            before = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
            held.callback(signal.signal, signal.SIGUSR1, before)

            caller = threading.main_thread()
            call = instance.pathlib.Path(f"/proc/self/task/{caller.native_id}/syscall")

            def interrupt():
                instance.wait_until(lambda: call.read_text().startswith(f"{CONNECT} "), "the caller to wait")
                signal.pthread_kill(caller.ident, signal.SIGUSR1)
                handled.wait(instance.PATIENCE_S)
                held.enter_context(listener.accept()[0])

            interrupter = threading.Thread(target=interrupt)
            interrupter.start()
            connected = varlink.Varlink(f"{folder}/s")
            interrupter.join()
            self.assertTrue(handled.is_set())
            self.assertEqual(connected.socket.getpeername(), f"{folder}/s")
            connected.close()

    def test_waits_no_longer_than_told(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
            self.full_queue(held, f"{folder}/s")
            interruptions = []
            before = signal.signal(signal.SIGALRM, lambda *_: interruptions.append(True))
            held.callback(signal.signal, signal.SIGALRM, before)
            held.callback(signal.setitimer, signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            for patience_s in (0, 0.5):
                with self.assertRaisesRegex(gpuctl.Unreachable, "did not answer in time"):
                    gpuctl.connect(f"{folder}/s", patience_s)
            self.assertGreater(len(interruptions), 1)


class LateReplies(unittest.TestCase):
    """Of a daemon that answers the first call when it is told to."""

    def setUp(self):
        held = contextlib.ExitStack()
        self.addCleanup(held.close)
        folder = held.enter_context(tempfile.TemporaryDirectory())
        self.listener = held.enter_context(socket.socket(socket.AF_UNIX))
        self.listener.bind(f"{folder}/s")
        self.listener.listen(1)
        self.daemon_there = held.enter_context(gpuctl.connect(f"{folder}/s", 0.2))
        self.peer = held.enter_context(self.listener.accept()[0])

    def answer(self, path):
        with contextlib.suppress(BrokenPipeError):
            self.peer.sendall(b'{"parameters": {"slice": {"path": "%s"}}}\0' % path)

    def test_none_is_taken_for_the_reply_to_the_next_call(self):
        with self.assertRaisesRegex(gpuctl.Unreachable, "did not answer"):
            self.daemon_there.slice("a")
        self.answer(b"a")
        with self.assertRaisesRegex(gpuctl.Unreachable, "connect again"):
            self.daemon_there.slice("b")

    def test_nor_after_an_interruption(self):
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(KeyboardInterrupt):
            self.daemon_there.slice("a")
        self.answer(b"a")
        with self.assertRaisesRegex(gpuctl.Unreachable, "connect again"):
            self.daemon_there.slice("b")

    def test_kill_waits_for_the_end_of_programs_too(self):
        answer = threading.Timer(0.5, self.answer, [b"a"])
        answer.start()
        self.addCleanup(answer.join)
        self.daemon_there.handle("a").kill(timeout_ms=60000)


class Amounts(unittest.TestCase):
    def test_what_is_given_is_what_is_read(self):
        for name, value, said in (
            ("reserve", 8, {"reserve": 8}),
            ("reserve", "8", {"reserve": 8, "reserve_per_gpu": "none"}),
            ("reserve", "25%", {"reserve": 0, "reserve_per_gpu": "25%"}),
            ("max", None, {"max_unlimited": True}),
            ("max", "none", {"max_unlimited": True, "max_per_gpu": "none"}),
            ("max", "40,1:16", {"max": 40, "max_per_gpu": "1:16"}),
            ("max", "none,1:16", {"max_unlimited": True, "max_per_gpu": "1:16"}),
            ("memory_max", "16G,1:25%", {"memory_max": 16 << 30, "memory_max_per_gpu": "1:25%"}),
        ):
            with self.subTest(value):
                settings = amounts.settings_of(name, value)
                self.assertEqual(settings, said)
                fields = {field: set_to for field, set_to in settings.items() if not field.endswith("unlimited")}
                again = amounts.settings_of(name, amounts.value_of(model.Slice(**fields), name))
                same = {f"{name}_per_gpu": "none"}
                self.assertEqual({**same, **again}, {**same, **said})

    def test_what_is_no_amount_is_said_as_it_is(self):
        for name in amounts.AMOUNTS:
            for value, others in (("", ""), (",", ","), ("4,", ""), (",0:2", ",0:2")):
                with self.subTest(name=name, value=value):
                    self.assertEqual(amounts.settings_of(name, value)[f"{name}_per_gpu"], others)


class Package(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.env["PATH"] = f"{instance.GPUCTL.parent}:{os.environ['PATH']}"
        self.daemon_there = gpuctl.connect(self.socket)
        self.addCleanup(self.daemon_there.close)

    def test_slices(self):
        there = self.daemon_there
        batch = there.create("batch", max=4, weight=50)
        self.assertEqual((batch.get().max, batch.get().weight), (4, 50))
        self.assertEqual(batch.set(max=6).max, 6)
        self.assertIsNone(batch.set(max=None, memory_max=1 << 30).max)
        self.assertEqual([one.path for one in there.slices()], ["/", "batch"])
        self.assertEqual(batch.set(memory_max=None).memory_max, None)
        self.assertEqual(batch.set(max="50%", reserve="0:2").max_per_gpu, "50%")
        self.assertEqual([(on.reserve, on.max) for on in batch.get().on_gpus], [(2, instance.SMS // 2)])
        batch.delete()
        self.assertEqual([one.path for one in there.snapshot().slices], ["/"])
        self.assertEqual([device.sms for device in there.status().devices], [instance.SMS])

    def test_what_is_refused_says_what_and_why(self):
        with self.assertRaises(gpuctl.Refused) as refused:
            self.daemon_there.slice("none")
        self.assertEqual((refused.exception.name, refused.exception.parameters), ("NoSuchSlice", {"path": "none"}))
        with self.assertRaisesRegex(gpuctl.Refused, "weight"):
            self.daemon_there.create("batch", weight=0)
        self.assertEqual([one.path for one in self.daemon_there.slices()], ["/"])
        batch = self.daemon_there.create("batch", **dict.fromkeys(amounts.AMOUNTS, 1))
        for name in amounts.AMOUNTS:
            for value in ("", ",", "4,", ",0:2"):
                with self.subTest(name=name, value=value), self.assertRaisesRegex(gpuctl.Refused, f"{name}_per_gpu"):
                    batch.set(**{name: value})
        now = batch.get()
        self.assertEqual([amounts.value_of(now, name) for name in amounts.AMOUNTS], [1] * len(amounts.AMOUNTS))

    def test_no_daemon(self):
        with self.assertRaisesRegex(gpuctl.Unreachable, "nowhere"):
            gpuctl.connect(self.scratch / "nowhere")
        self.daemon.kill()
        with self.assertRaises(gpuctl.Unreachable):
            self.daemon_there.status()

    def test_requests_that_a_program_names(self):
        script = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import gpuctl
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
for _ in range(5):
    with gpuctl.request():
        assert cuda.cuCtxSynchronize() == 0
try:
    with gpuctl.request():
        raise ValueError
except ValueError:
    pass
print("named", flush=True)
sys.stdin.read()
"""
        batch = self.daemon_there.create("batch")
        program = batch.start(
            [sys.executable, "-c", script, str(INTERFACE.parents[2] / "python")],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(program.communicate)
        self.assertEqual(program.stdout.readline(), "named\n")
        instance.wait_until(
            lambda: [(one.of, one.count) for one in batch.get().latencies if one.seconds == 0] == [("requests", 5)],
            "five requests, and no burst",
        )

    def test_without_the_library_a_request_is_nothing(self):
        with gpuctl.request():
            pass

    def test_a_temporary_slice_and_a_program_in_it(self):
        with self.daemon_there.temporary("job", max=2) as job:
            done = job.run(
                [instance.BENCH, "run", "work", "--blocks", "8", "--count", "4"],
                env=self.env,
                stdout=subprocess.PIPE,
                check=True,
            )
            self.assertIn(b"4 launches", done.stdout)
            running = job.start(
                [instance.BENCH, "run", "work", "--blocks", "8", "--seconds", "600"],
                env=self.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self.addCleanup(running.wait)
            instance.wait_until(job.clients, "the program to be there")
            (client,) = job.clients()
            self.assertEqual((client.pid, client.slice, len(client.usage)), (running.pid, "job", 1))
        running.wait(instance.PATIENCE_S)
        self.assertEqual([one.path for one in self.daemon_there.slices()], ["/"])

    def test_a_temporary_slice_goes_without_the_connection_too(self):
        with self.assertRaises(KeyboardInterrupt), self.daemon_there.temporary("job"):
            self.daemon_there.close()
            raise KeyboardInterrupt
        self.assertEqual([one["path"] for one in self.gpuctl_json("list")["slices"]], ["/"])


if __name__ == "__main__":
    instance.main()
