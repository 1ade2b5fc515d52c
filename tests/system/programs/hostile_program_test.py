"""Programs that treat their own process badly do in a slice what they do plain."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.system.harness import instance

HOSTILE = instance.DRIVER_PROGRAMS / "hostile"
SET_UID = instance.DRIVER_PROGRAMS / "set_uid"
LIBRARY = instance.BUILD / "src/libgpuslice/libgpuslice.so"
CANNOT = 77  # the system forbids what the program does
ROOT = os.geteuid() == 0
CHILDREN = 100


class HostileProgram(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 3)
        self.debug = self.scratch / "debug"

    def assertAsPlain(self, *arguments, log=None):
        """Status and output are the same in a slice; if `log` is given, the library says so there."""
        plain = self.start(HOSTILE, *arguments)
        status = plain.wait()
        if status == CANNOT:
            self.skipTest(f"the system forbids {' '.join(map(str, arguments))}")
        self.assertEqual(status, 0, plain.err())
        env = {**self.env_of_others(), "GPUSLICE_DEBUG": str(self.debug)}
        sliced = self.start_in("s", HOSTILE, *arguments, env=env)
        self.assertEqual(sliced.wait(), 0, sliced.err())
        self.assertEqual((sliced.out(), sliced.err()), (plain.out(), plain.err()))
        self.assertIn(log or "attached to slice", self.debug.read_text())

    def test_children_that_exit_exec_and_use_the_gpu(self):
        self.assertAsPlain("forks", CHILDREN)
        instance.wait_until(lambda: not self.clients("s"), "all children to be gone")

    def test_ends_while_threads_launch(self):
        self.assertAsPlain("exits", 15)
        instance.wait_until(lambda: not self.clients("s"), "all children to be gone")

    @unittest.skipUnless(ROOT, "only root may chroot")
    def test_in_a_chroot_without_the_socket(self):
        root = self.scratch / "root"
        root.mkdir()
        os.link(self.env["SOFTGPU_TABLE"], root / "softgpu")
        self.assertAsPlain("chroot", root, log="cannot connect to")

    def test_sockets_are_forbidden(self):
        self.assertAsPlain("deny", "sockets", log="Operation not permitted")

    def test_processes_are_forbidden(self):
        self.assertAsPlain("deny", "processes", log="no process")

    def test_few_descriptors_are_left(self):
        """The program has three when it starts. The software GPU's threads need some for moments, and find them."""
        for limit in (7, 8, 9, 10, 12, 16, 20, 24, 40):
            limited = ["sh", "-c", f"ulimit -n {limit}; exec {HOSTILE} gpu"]
            for start in (self.start, lambda *command: self.start_in("s", *command)):
                program = start(*limited)
                self.assertEqual((program.wait(), program.out()), (0, "0 wrong\n"), f"{limit}: {program.err()}")

    def test_closes_the_library(self):
        # Once it is open, the program joins the slice by its functions; before, nothing preloads it.
        env = {name: value for name, value in self.env_of_others().items() if name != "GPUCTL_SLICE"}
        program = self.start(HOSTILE, "dlclose", LIBRARY, env=env)
        self.assertEqual((program.wait(), program.out()), (0, "0 wrong\n"), program.err())


class Idle(instance.SystemTest):
    """Programs that never use a GPU: the library does nothing in them."""

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def test_no_thread_and_no_descriptor(self):
        plain = self.start(HOSTILE, "idle")
        sliced = self.start_in("s", HOSTILE, "idle")
        self.assertEqual((sliced.wait(), plain.wait()), (0, 0))
        self.assertEqual(sliced.out(), plain.out())
        self.assertIn("1 threads", plain.out())

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_system_calls(self):
        """As many as plain. Some programs make a few of their own: bash without HOME asks nscd for it."""
        for command in (["ls", "/"], ["bash", "-c", "true"], [sys.executable, "-c", "pass"]):
            plain, _ = self.calls(self.start, command)
            sliced, trace = self.calls(lambda *traced: self.start_in("s", *traced), command)
            self.assertEqual(sliced, plain, command)
            self.assertIn("libgpuslice.so", trace)  # else the test would see nothing
            self.assertNotIn(str(self.env["XDG_CACHE_HOME"]), trace)

    def calls(self, start, command):
        """How many calls of each kind that the library has no business to make, and the whole trace."""
        file = self.scratch / "trace"
        done = start("strace", "-f", "-o", file, *command)
        self.assertEqual(done.wait(), 0, done.err())
        trace = file.read_text()
        kinds = ("socket", "connect", "clone", "clone3", "eventfd2", "memfd_create")
        return {kind: trace.count(f" {kind}(") for kind in kinds}, trace

    def test_no_connection_and_no_file(self):
        """While it waits for its input."""
        program = self.start_idle(["cat"])
        self.addCleanup(program.stdin.close)
        program.stdin.write(b"x")
        program.stdin.flush()
        self.assertEqual(program.stdout.read(1), b"x")  # it is past all constructors
        self.assertEqual(len(os.listdir(f"/proc/{program.pid}/task")), 1)
        self.assertEqual(sorted(os.listdir(f"/proc/{program.pid}/fd")), ["0", "1", "2"])
        self.assertEqual(self.clients("s"), [])
        self.assertFalse(pathlib.Path(self.env["XDG_CACHE_HOME"]).exists())
        self.assertIn("libgpuslice.so", pathlib.Path(f"/proc/{program.pid}/maps").read_text())

    def start_idle(self, command):
        run = [str(instance.GPUCTL), "run", "--slice", "s", *command]
        program = subprocess.Popen(
            run, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.addCleanup(program.stdout.close)
        return program


@unittest.skipUnless(ROOT, "only root can make a program of another user set-uid")
class SetUid(instance.SystemTest):
    """Root's program, started by nobody: nothing that nobody chose counts."""

    NOBODY = 65534

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        # The dynamic linker ignores LD_LIBRARY_PATH here, and takes what the program was linked with.
        place = tempfile.TemporaryDirectory(prefix="gpuctl-set-uid.")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.place.chmod(0o755)
        self.program = self.place / "set_uid"
        shutil.copy(SET_UID, self.program)
        self.caller = self.place / "caller"
        self.caller.mkdir()
        self.caller.chmod(0o777)
        self.env.update(
            GPUCTL_SLICE="s",
            GPUSLICE_DEBUG=str(self.caller / "debug"),
            XDG_CACHE_HOME=str(self.caller / "cache"),
            HOME=str(self.caller),
        )

    def run_as(self, user):
        program = subprocess.run(
            [str(self.program)], env=self.env, user=user, capture_output=True, text=True, timeout=60
        )
        return program.returncode, program.stdout, program.stderr

    def test_what_the_caller_chose_does_not_count(self):
        self.program.chmod(0o4755)
        status, out, err = self.run_as(self.NOBODY)
        if "same rights" in out:
            self.skipTest("this file system has no set-uid programs")
        self.assertEqual((status, out), (0, "more rights, no slice, 0 wrong\n"), err)
        self.assertEqual(os.listdir(self.caller), [])

    def test_the_same_program_without_more_rights(self):
        """Else the test above would see nothing."""
        self.assertEqual(self.run_as(0)[:2], (0, "same rights, s, 0 wrong\n"))
        self.assertIn("debug", os.listdir(self.caller))


if __name__ == "__main__":
    instance.main()
