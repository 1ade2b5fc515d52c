"""Shared by the tests of the gpuctld program: the daemon, and a program attached to it."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3]))

from bench.lab.client import Varlink, attach  # noqa: E402

UUID = "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"
GRANT, USAGE = 64, 64 + 64 * 16  # offsets in the stub page (src/ipc/stub.h)
EPOCH = 16  # in Grant
APPLIED, LAUNCHES = 8, 16  # in Usage
TIME_SLICE = 56  # in Grant
TIME_SLICE_SAID = 248  # in Usage: us, state, channel groups
DRIVERS_TIME_SLICE = 0xFFFFFFFF


class Program:
    """What libgpuslice does, without a GPU."""

    def __init__(self, path, slice_path, resumed=False):
        self.varlink = Varlink(path)
        self.reply, self.stub, self.kick = attach(
            self.varlink, slice=slice_path, device_uuids=[UUID], resumed=resumed, command=" ".join(sys.argv)
        )

    def granted(self):
        return struct.unpack_from("<I", self.stub, GRANT)[0]

    def time_slice(self):
        return struct.unpack_from("<I", self.stub, GRANT + TIME_SLICE)[0]

    def say_time_slice(self, us, state, groups):
        struct.pack_into("<IHH", self.stub, USAGE + TIME_SLICE_SAID, us, state, groups)

    def apply(self):
        """Says that it has left every SM that it is not granted."""
        self.stub[USAGE + APPLIED : USAGE + APPLIED + 4] = self.stub[GRANT + EPOCH : GRANT + EPOCH + 4]

    def demand(self, sms):
        struct.pack_into("<I", self.stub, USAGE, sms)
        os.write(self.kick, struct.pack("<Q", 1))

    def launch(self):
        (before,) = struct.unpack_from("<Q", self.stub, USAGE + LAUNCHES)
        struct.pack_into("<Q", self.stub, USAGE + LAUNCHES, before + 1)

    def close(self):
        self.varlink.close()


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


class DaemonTestCase(unittest.TestCase):
    """Starts the daemon, in a directory of its own."""

    GPUCTLD, FAKE_DRIVER, WITH_SYSTEMD = None, None, False

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="gpuctld-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.symlink(self.FAKE_DRIVER, os.path.join(self.directory, "libcuda.so.1"))
        self.path = os.path.join(self.directory, "s")
        self.environment = dict(os.environ, LD_LIBRARY_PATH=self.directory, CUDA_MPS_PIPE_DIRECTORY=self.directory)
        self.daemon = None
        self.addCleanup(self.kill)

    def pretend_mps(self):
        """Fakes the control daemon of MPS, so that programs run side by side."""
        program = shutil.copy(shutil.which("sleep"), os.path.join(self.directory, "nvidia-cuda-mps-control"))
        control = subprocess.Popen([program, "600"])
        self.addCleanup(control.communicate)
        self.addCleanup(control.kill)
        self.write("nvidia-cuda-mps-control.pid", str(control.pid))

    def spawn(self, *arguments):
        return subprocess.Popen(
            [self.GPUCTLD, *arguments], env=self.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *arguments):
        self.daemon = self.spawn("--socket", self.path, *arguments)
        self.assertTrue(eventually(self.answers), "gpuctld does not answer")

    def answers(self):
        self.assertIsNone(self.daemon.poll(), "gpuctld ended")
        try:
            self.call("GetStatus")
            return True
        except OSError:
            return False

    def kill(self):
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.communicate()
            self.daemon = None

    def call(self, method, **parameters):
        varlink = Varlink(self.path)
        try:
            return varlink.call(method, **parameters)
        finally:
            varlink.close()

    def fails(self, *arguments):
        """The lines that a daemon which cannot start leaves on stderr."""
        daemon = self.spawn("--socket", self.path, *arguments)
        _, errors = daemon.communicate(timeout=60)
        self.assertEqual(daemon.returncode, 1)
        self.assertEqual(os.path.exists(self.path), self.daemon is not None)
        return errors.splitlines()

    def as_user(self, uid, function):
        """What the function returns in a process of this user, who is in no other group."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                os.write(write, json.dumps(function()).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read) as answer:
            text = answer.read()
        os.waitpid(child, 0)
        return json.loads(text)

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        return path
