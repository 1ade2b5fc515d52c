"""Where the driver can limit control groups, gpuctld has it limit those that a slice names.

A library in place of NVML writes down what it is told. The software GPU is the first GPU that it knows.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import threading
import unittest

from tests.system.daemon.join_test import remove
from tests.system.harness import instance

MIB = 1 << 20
NONE = (1 << 64) - 1
UNCOUNTED = 1024 * MIB + instance.SMS * 8 * MIB  # of each program
PROGRAM = ("work", "--iterations", 30, "--blocks", 64, "--count", 1_000_000, "--announce")

# The tree of version 2: where it is expected, or beside those of version 1, where only a daemon finds it to which it is
# mounted there.
EXPECTED = pathlib.Path("/sys/fs/cgroup")
TREES = [EXPECTED, EXPECTED / "unified"]
TREE = next((tree for tree in TREES if (tree / "cgroup.controllers").exists() and os.access(tree, os.W_OK)), None)
MOUNTED = ("unshare", "--mount", "sh", "-c", f'mount --bind "$0" {EXPECTED} && exec "$@"', TREE)
CAN_MOUNT = TREE == EXPECTED or (TREE and shutil.which("unshare") and os.geteuid() == 0)


@unittest.skipUnless(CAN_MOUNT, "no tree of cgroups of version 2 can be written here")
class DriverLimits(instance.SystemTest):
    def setUp(self):
        self.unit = self.make(TREE / f"gpuctl-limits-{os.getpid()}.slice", "gpuctl-limits.service")
        self.of_user = self.make(self.unit.parent / "user@7.service", self.unit.name)
        super().setUp()  # what it cleans up, programs first, goes before them
        self.told = self.scratch / "told"
        self.env["LD_LIBRARY_PATH"] = str(instance.BUILD / "src/gpuctl")  # what stands in for NVML
        self.env["FAKE_NVML_SET"] = str(self.told)
        self.env["SOFTGPU_MEMORY_MIB"] = "16384"  # more than four programs can have
        self.start_limiting()
        self.gpuctl("create-slice", "s", "--join", f"unit:{self.unit.name}", "--memory-max", "512M")

    def make(self, group, *below):
        """Control groups, which go when the test is over."""
        group.mkdir()
        self.addCleanup(instance.wait_until, lambda: remove(group), f"{group} to be empty")
        return self.make(group / below[0], *below[1:]) if below else group

    def start_limiting(self, *options):
        self.start_daemon(*options, before=() if TREE == EXPECTED else MOUNTED)

    def start_inside(self, unit):
        env = {
            **self.env,
            "GPUCTL_SOCKET": str(self.socket),
            "GPUCTL_SLICE": "s",
            "LD_PRELOAD": str(instance.BUILD / "src/libgpuslice/libgpuslice.so.0"),
        }
        enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', unit)
        program = self.start(*enter, instance.BENCH, "run", *PROGRAM, "--json", env=env)
        program.wait_started()
        return program

    def enforced(self):
        """Bytes, as the daemon says of the slice."""
        return [on.get("driver_max") for on in self.call("GetSlice", path="s")["slice"].get("on_gpus", [])]

    def wait_told(self, hard):
        """Until that is the last that the driver was told, of the unit on its first GPU."""
        line = f"GPU-1 {EXPECTED / self.unit.relative_to(TREE)} 0 {hard}"

        def last():
            return self.told.exists() and self.told.read_text().splitlines()[-1:] == [line]

        instance.wait_until(last, line, told=lambda: self.told.exists() and self.told.read_text())

    def test_limits_follow_the_programs_and_the_slice(self):
        first = self.start_inside(self.unit)
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        instance.wait_until(lambda: self.enforced() == [512 * MIB + 2 * UNCOUNTED], "the daemon to say so")
        others = [self.start_inside(self.unit), self.start_inside(self.unit)]
        self.wait_told(512 * MIB + 4 * UNCOUNTED)
        for other in others:
            other.stop()
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        self.assertEqual(len(self.told.read_text().splitlines()), 3, "the third program has room already")
        self.gpuctl("create-slice", "other")
        self.gpuctl("move", first.pid, "other")
        self.wait_told(NONE)
        self.gpuctl("move", first.pid, "s")
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        self.gpuctl("set", "s", "memory-max=none")
        self.wait_told(NONE)
        instance.wait_until(lambda: self.enforced() == [None], "the daemon to say so")
        self.assertNotIn("the library alone", self.gpuctl("status").stdout)
        first.stop()

    def test_a_program_elsewhere_is_no_matter_of_the_driver(self):
        program = self.start_in("s", instance.BENCH, "run", *PROGRAM, "--json")
        program.wait_started()
        inside = [self.start_inside(self.of_user), self.start_inside(self.unit)]
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        self.assertEqual(len(self.told.read_text().splitlines()), 1, "another unit of that name is not limited")
        for one in (program, *inside):
            one.stop()

    def answer(self, listener):
        """What the service manager does for gpuctld-limits.socket."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            with connection:
                command = [instance.GPUCTLD, "--limit-memory"]
                subprocess.run(command, env=self.env, stdin=connection, stdout=connection, check=False)

    def test_limits_are_set_behind_a_socket(self):
        self.daemon.process.terminate()
        self.daemon.wait()
        path = self.scratch / "limits"
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=self.answer, args=(listener,), daemon=True).start()
        self.start_limiting("--limits-socket", path)
        program = self.start_inside(self.unit)
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        self.gpuctl("set", "s", "memory-max=256M")
        self.wait_told(256 * MIB + 2 * UNCOUNTED)
        program.stop()

    def test_a_driver_that_refuses_does_no_harm(self):
        self.told.with_name("told.error").write_text("4\n")
        programs = [self.start_inside(self.unit)]
        note = "the library alone does: NVML answers NO_PERMISSION"
        instance.wait_until(lambda: note in self.gpuctl("status").stdout, "status to say so")
        programs.append(self.start_inside(self.unit))
        self.assertEqual(self.daemon.err().count(note), 1, self.daemon.err())
        self.assertEqual(self.enforced(), [None])
        for one in programs:
            one.stop()
        self.assertEqual(len(self.told.read_text().splitlines()), 1, "it is not told again and again")

    def test_a_driver_that_crashes_does_no_harm(self):
        self.daemon.process.terminate()
        self.daemon.wait()
        self.env["FAKE_NVML_SET"] = "abort"
        self.start_limiting()
        program = self.start_inside(self.unit)
        instance.wait_until(lambda: "the library alone does" in self.gpuctl("status").stdout, "status to say so")
        program.stop()
        self.assertIsNone(self.daemon.process.poll())

    def test_the_next_daemon_sets_what_is_wanted(self):
        program = self.start_inside(self.unit)
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        self.daemon.kill()
        self.told.unlink()
        self.start_limiting()
        self.wait_told(512 * MIB + 2 * UNCOUNTED)
        program.stop()


if __name__ == "__main__":
    instance.main()
