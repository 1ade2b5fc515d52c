"""A daemon and libraries of different versions: programs of either are right, and nobody asks without end.

What has another version of the stub page runs without limits; one line each in the daemon's log and the program's trace
says so. With a built copy of the last release (scripts/keep-release.sh) that one runs with today's, too.
"""

import json
import os
import pathlib
import re
import shutil
import unittest
from unittest import mock

from tests.system.daemon.hostile_daemon_test import VERSION, FakeDaemon, Page, attached, success
from tests.system.harness import instance

LIBRARY = "src/libgpuslice/libgpuslice.so"
NEXT_LIBRARY = instance.BUILD / "src/libgpuslice/libgpuslice-next.so"
HOSTILE = instance.DRIVER_PROGRAMS / "hostile"
LINGERS = (instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
RELEASE = pathlib.Path(__file__).resolve().parents[3] / "build-release/build"


def other_version(client, daemon):
    parameters = {"client": client, "daemon": daemon}
    return json.dumps({"error": "io.gpuctl.OtherVersion", "parameters": parameters}).encode() + b"\0"


class Versions(instance.SystemTest):
    def with_library(self, library):
        """The environment of a program that has this library in it."""
        self.debug = self.scratch / "debug"
        env = {**self.env_of_others(), "GPUCTL_SLICE": "/", "GPUSLICE_DEBUG": str(self.debug)}
        env["LD_PRELOAD"] = ":".join(filter(None, (env.get("LD_PRELOAD"), str(library))))
        return env

    def assertRight(self, library):
        program = self.start(HOSTILE, "gpu", env=self.with_library(library))
        self.assertEqual((program.wait(), program.out(), program.err()), (0, "0 wrong\n", ""))
        return program


def lines(text, what):
    return [line for line in text.splitlines() if what in line]


class Upgrade(Versions):
    def test_a_library_of_the_next_version(self):
        self.start_daemon()
        program = self.start(*LINGERS, env=self.with_library(NEXT_LIBRARY))
        said = f"stub page version {VERSION + 1}, gpuctld has {VERSION}"
        instance.wait_until(lambda: "done" in program.err(), "its work to be done")
        instance.wait_until(lambda: said in self.debug.read_text(), "the program to be refused")
        self.assertRight(NEXT_LIBRARY)
        self.assertEqual(self.call("ListClients")["clients"], [])
        program.process.terminate()
        program.wait()
        log = self.daemon.err()
        self.assertEqual(len(lines(log, f"process {program.pid} ")), 1, log)
        self.assertIn(f"version {VERSION + 1}", lines(log, f"process {program.pid} ")[0])
        self.assertRight(instance.BUILD / LIBRARY)  # today's is served as ever
        self.assertIn("attached to slice /", self.debug.read_text())

    def assertRefusedQuietly(self, answer, said):
        """A program whose daemon answers so has its work done, asks less and less, and says why once."""
        daemon = FakeDaemon(self.socket, answer)
        self.addCleanup(daemon.close)
        program = self.start(*LINGERS, env=self.with_library(instance.BUILD / LIBRARY))
        instance.wait_until(lambda: len(daemon.times) >= 5, "five tries")
        instance.wait_until(lambda: "done" in program.err(), "its work to be done")
        program.process.terminate()
        program.wait()
        pauses = [after - before for before, after in zip(daemon.times, daemon.times[1:], strict=False)]
        for number, pause in enumerate(pauses[:4]):
            self.assertGreater(pause, 0.1 * 2**number - 0.05, pauses)
        self.assertEqual(len(lines(self.debug.read_text(), said)), 1, self.debug.read_text())

    def run_with(self, percentage, **more):
        """A program whose daemon says so of MPS; how it attached."""
        page = Page()
        kick = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        daemon = FakeDaemon(self.socket, lambda: (attached(), [page.file, kick]), percentage, **more)
        self.addCleanup(daemon.close)
        self.assertRight(instance.BUILD / LIBRARY)
        self.assertIn("attached to slice s", self.debug.read_text())
        self.connections = len(daemon.kept)
        return daemon.calls[0]

    def test_a_daemon_that_hands_out_no_queues(self):
        """It refuses the field. What it knows it says all the same."""
        refused = json.dumps({"error": "io.gpuctl.InvalidValue", "parameters": {"field": "queues", "problem": "?"}})
        call = self.run_with(lambda asks: refused.encode() + b"\0" if b"queues" in asks else success(hundredths=5000))
        self.assertNotIn("queues", call)
        self.assertIn("mps_sms", call)
        self.assertIn("keep this program to 50.00 %", self.debug.read_text())

    def test_a_daemon_that_ends_after_its_promise(self):
        """The program attaches to the next one, and says what it has."""
        self.assertEqual(self.run_with(success(queues=4), hangs_up=True)["queues"], 4)

    def test_a_program_attaches_with_the_connection_to_which_queues_are_promised(self):
        self.assertEqual(self.run_with(success(queues=2))["queues"], 2)
        self.assertEqual(self.connections, 1)

    def test_a_daemon_of_the_version_before(self):
        answer = other_version(VERSION, VERSION - 1)
        self.assertRefusedQuietly(lambda: (answer, []), f"version {VERSION}, gpuctld has {VERSION - 1}")

    def test_a_daemon_that_hands_over_its_page_all_the_same(self):
        def answer():
            return attached(), [Page(version=VERSION - 1).file, os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)]

        self.assertRefusedQuietly(answer, "made by another version of gpuctld")


@unittest.skipUnless(RELEASE.exists(), "no copy of a release here (scripts/keep-release.sh)")
class UpgradeFromRelease(Versions):
    def version_of(self, tree):
        return int(re.search(r"kStubVersion = (\d+)", (tree / "src/ipc/stub.h").read_text())[1])

    def start_daemon_of_release(self):
        """With today's software GPU, that of the programs: the table that they share is of one version."""
        place = self.scratch / "release"
        daemon = place / "gpuctld/gpuctld"
        daemon.parent.mkdir(parents=True)
        shutil.copy2(RELEASE / "src/gpuctld/gpuctld", daemon)
        for found in (place / "softgpu", place.parent / "softgpu"):  # of older releases, of this build
            found.symlink_to(instance.SOFTGPU)
        with mock.patch.object(instance, "GPUCTLD", daemon):
            self.start_daemon()

    def assertServed(self, library, build):
        """The daemon of this build serves it if they have the same version; the program is right in any case."""
        self.assertRight(library)
        same = self.version_of(RELEASE.parent / "source") == VERSION
        self.assertEqual("attached to slice /" in self.debug.read_text(), same, build)

    def test_todays_daemon_and_the_library_of_the_release(self):
        self.start_daemon()
        self.assertServed(RELEASE / LIBRARY, instance.BUILD)

    def test_the_daemon_of_the_release_and_todays_library(self):
        self.start_daemon_of_release()
        self.assertServed(instance.BUILD / LIBRARY, RELEASE)

    def test_a_program_stays_while_the_daemon_is_replaced(self):
        """The slices of the release are there for today's daemon, and its programs go on."""
        self.start_daemon_of_release()
        self.gpuctl("create-slice", "kept", "--max", 5)
        program = self.start(*LINGERS, env=self.with_library(RELEASE / LIBRARY))
        instance.wait_until(lambda: "done" in program.err(), "its work to be done")
        self.daemon.process.terminate()
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())
        self.start_daemon()
        self.assertEqual(self.call("GetSlice", path="kept")["slice"]["max"], 5)
        self.assertIsNone(program.process.poll(), program.err())


if __name__ == "__main__":
    instance.main()
