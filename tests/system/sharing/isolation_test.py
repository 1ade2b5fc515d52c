"""Isolated slices: their programs take turns with others on the GPU, which stops kernels in their middle for that.

What stands in for MPS and for NVIDIA's kernel module is in tests/driver: a server that has the context of all shared
programs, with libgpuslice inside, and ioctl calls that set how long turns of the software GPU last.
"""

import os
import signal
import subprocess

from tests.system.harness import instance, pretended_mps
from tests.system.harness.slice_shell import LONG, SliceShell

# Blocks of 3 s, 8 at a time on an SM: half of them fit.
RESIDENT = 8 * instance.SMS
ENDLESS = (2 * RESIDENT, 30_000 * instance.SLOWER)
SHORT = (8, 20)
RUN = (instance.GPUCTL, "run", "--slice")
SERVER_US = 100  # kServerSecondUs
GIVING_WAY_US = 1
# What cuInit leaves of the environment, for the program and for its children.
PROGRAM = """
import ctypes, subprocess, sys
cuda, libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
name = "CUDA_MPS_PIPE_DIRECTORY"
status = cuda.cuInit(0)
child = subprocess.run(["printenv", name], capture_output=True, text=True)
print(status, libc.getenv(name.encode()).decode(), child.stdout.strip(), flush=True)
sys.stdin.readline()
"""


class Harness(instance.SystemTest):
    def start_slices(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "ls", "--isolation", "isolated", "--priority", 10)
        self.gpuctl("create-slice", "batch")

    def shell(self, slice_path, **environment):
        shell = SliceShell(self, (*RUN, slice_path), **environment)
        shell.do("init")
        return shell

    def turns(self):
        """{context: (turns that it has begun, how long they last)}"""
        watch = [instance.DRIVER_PROGRAMS / "sm_watch", self.env["SOFTGPU_TABLE"], "turns"]
        lines = subprocess.run(watch, capture_output=True, text=True, check=True).stdout.splitlines()
        return {context: (turns, us) for context, turns, us in (map(int, line.split()) for line in lines)}

    def isolated(self, slice_path):
        return [client["isolated"] for client in self.clients(slice_path)]


class Isolation(Harness):
    def test_it_waits_for_no_kernel_of_others(self):
        self.start_slices()
        batch, ls, shared = self.shell("batch"), self.shell("ls"), self.shell("batch")
        batch.do("launch", 0, *ENDLESS)
        instance.wait_until(lambda: len(batch.records(0)) == RESIDENT, "the GPU to be full")
        shared.do("launch", 0, *SHORT)
        ls.do("launch", 0, *SHORT)
        ls.finish()
        self.assertEqual(len(ls.records(0)), SHORT[0])
        self.assertEqual(len(batch.records(0)), RESIDENT, "a block has ended, and another one has begun")
        self.assertEqual(shared.records(0), [], "what shares the context waits")
        self.assertEqual(self.isolated("ls") + self.isolated("batch"), [True, False, False])
        shared.end()
        batch.finish()
        runs = {record.runs for record in batch.records(0)}
        self.assertEqual(runs, {1}, "blocks that waited in their middle went on")

    def test_a_fault_of_others_does_not_reach_it(self):
        """As between any two processes of the software GPU, but here in the middle of their turns."""
        self.start_slices()
        ls = self.shell("ls")
        ls.do("launch", 0, *LONG)
        batch = self.shell("batch")
        batch.do("launch", 0, *LONG)
        instance.wait_until(lambda: batch.look(0)[0] > 0, "batch to have a turn")
        batch.end()
        ls.finish(0)

    def test_what_is_said_of_it(self):
        self.start_slices()
        ls, batch = self.shell("ls"), self.start_idle_in("batch")
        self.assertIn("isolated: it shares no context", self.gpuctl("explain", ls.pid).stdout)
        self.assertNotIn("isolated", self.gpuctl("explain", batch.pid).stdout)
        self.assertRegex(self.gpuctl("show", "ls").stdout, r"\nisolation +isolated\n")
        self.assertRegex(self.gpuctl("top", "--once").stdout, rf"\n *{ls.pid} +ls .*free, isolated")
        note = (
            "slice batch is isolated: 1 program of it started before that and shares a context with others "
            "until it starts again"
        )
        self.assertEqual(self.gpuctl("set", "batch", "isolation=isolated").stderr, f"note: {note}\n")
        self.assertIn(note, self.gpuctl("status").stdout)
        self.assertEqual(self.isolated("batch"), [False])
        batch.kill()
        instance.wait_until(lambda: not self.clients("batch"), "it to be gone")
        self.assertNotIn("started before", self.gpuctl("status").stdout)
        self.start_idle_in("batch")
        self.assertEqual(self.isolated("batch"), [True])

    def test_below_it_everything_is_isolated_and_the_environment_stays(self):
        pipes = self.scratch / "mps"
        pipes.mkdir()
        self.env["CUDA_MPS_PIPE_DIRECTORY"] = str(pipes)
        self.start_slices()
        self.gpuctl("create-slice", "ls/a")
        program = self.start_script_in("ls/a", PROGRAM, says=f"0 {pipes} {pipes}")
        self.assertEqual(self.isolated("ls/a"), [True])
        program.end()

    def test_it_comes_back_isolated_to_the_next_daemon(self):
        self.start_slices()
        self.shell("ls")
        self.daemon.kill()
        self.start_daemon(config="")
        instance.wait_until(lambda: self.isolated("ls") == [True], "it to come back")


class Server(Harness):
    """Beside an MPS server with libgpuslice inside."""

    def setUp(self):
        super().setUp()
        self.pipes = self.scratch / "mps"
        self.pipes.mkdir()
        self.env["CUDA_MPS_PIPE_DIRECTORY"] = str(self.pipes)

    def env_of_channels(self, **more):
        """Of a program whose channel groups are to be seen."""
        preloaded = [instance.BUILD / "src/libgpuslice/libgpuslice.so", instance.DRIVER_PROGRAMS / "kernel_module.so"]
        runtime = os.environ.get("GPUCTL_SANITIZER_RUNTIME")
        return {
            "LD_PRELOAD": ":".join(filter(None, [runtime, *map(str, preloaded)])),
            "LD_LIBRARY_PATH": str(instance.SOFTGPU),
            "SOFTGPU_CHANNELS": "1",
            **more,
        }

    def start_mps(self):
        program = instance.DRIVER_PROGRAMS / "nvidia-cuda-mps-control"
        env = {**self.env_of_others(), **self.env_of_channels(GPUCTL_MPS_SERVER=str(self.socket))}
        control = subprocess.Popen([program, "-f"], env=env)
        self.addCleanup(control.wait)
        self.addCleanup(control.terminate)
        instance.wait_until(lambda: "takes the length of its turns from here" in self.daemon.err(), "the server")

    def turns_of_server(self):
        return self.turns().get(0, (0, 0))[1]

    def test_turns_are_as_long_as_the_daemon_says(self):
        self.start_slices()
        self.start_mps()
        batch = self.shell("batch")
        ls = self.shell("ls", SOFTGPU_CHANNELS="1", LD_PRELOAD=str(instance.DRIVER_PROGRAMS / "kernel_module.so"))
        batch.do("launch", 0, *LONG)
        ls.do("launch", 0, *LONG)

        def lengths():
            return {context: us for context, (_, us) in self.turns().items()}

        instance.wait_until(lambda: len(self.turns()) == 2, "both to have turns")
        (other,) = set(self.turns()) - {0}
        instance.wait_until(lambda: lengths() == {0: SERVER_US, other: 0}, "the server to give way", told=lengths)
        before = self.turns()
        instance.wait_until(
            lambda: all(turns > before[context][0] for context, (turns, _) in self.turns().items()), "turns to go on"
        )
        self.gpuctl("set", "batch", "priority=20")
        ls.do("launch", 1, *SHORT)  # a program sets its own turns from its next launch on
        instance.wait_until(lambda: lengths() == {0: 0, other: GIVING_WAY_US}, "ls to give way", told=lengths)
        self.gpuctl("set", "batch", "priority=0")
        instance.wait_until(lambda: lengths() == {0: SERVER_US, other: 0}, "the server to give way", told=lengths)
        ls.finish(0)
        ls.end()
        instance.wait_until(lambda: lengths()[0] == 0, "the server to keep its turns", told=lengths)
        batch.finish(0)

    def test_an_mps_that_the_daemon_starts(self):
        """For the first program that would join it, and again for another one after it has ended."""
        self.env["PATH"] = f"{instance.DRIVER_PROGRAMS}:{self.env['PATH']}"
        before = dict(self.env)
        module = str(instance.DRIVER_PROGRAMS / "kernel_module.so")
        self.env.update(LD_PRELOAD=module, LD_LIBRARY_PATH=str(instance.SOFTGPU), SOFTGPU_CHANNELS="1")
        self.start_daemon(config="lab.manage_mps = true\n")
        self.env = before
        self.gpuctl("create-slice", "ls", "--isolation", "isolated", "--priority", 10)
        pid_file = self.pipes / "nvidia-cuda-mps-control.pid"
        self.addCleanup(lambda: pid_file.exists() and os.kill(int(pid_file.read_text()), signal.SIGTERM))
        ls = self.shell("ls")
        self.assertFalse(pid_file.exists(), "one that joins no MPS needs none")
        self.shell("/")
        said = "started MPS, with libgpuslice inside"
        instance.wait_until(lambda: said in self.daemon.err(), "MPS to be started")
        instance.wait_until(lambda: "takes the length of its turns" in self.daemon.err(), "its server")
        instance.wait_until(lambda: self.turns_of_server() == SERVER_US, "its turns")
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        instance.wait_until(lambda: "MPS has ended" in self.daemon.err(), "the daemon to see it")

        def started_again():
            self.shell("/").end()
            return self.daemon.err().count(said) == 2

        instance.wait_until(started_again, "MPS to be started again")
        ls.end()

    def test_nobody_else_is_taken_for_a_server(self):
        self.start_slices()
        pretended_mps.start(self, self.pipes)
        with self.assertRaisesRegex(AssertionError, "PermissionDenied"):
            self.call("ServeMps", stub_version=1)


if __name__ == "__main__":
    instance.main()
