"""Isolated slices: their programs take turns with others on the GPU, which stops kernels in their middle for that.

What stands in for MPS and for NVIDIA's kernel module is in tests/driver: a server that has the context of all shared
programs, with libgpuslice inside, and ioctl calls that set how long turns of the software GPU last.
"""

import os
import re
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
FIRST_MPS = 65  # context of the first MPS on the software GPU (kMpsContext)
GIVING_WAY_US = 1
DRIVERS_US = 2048
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
        return self.turns().get(FIRST_MPS, (0, 0))[1]

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
        (other,) = set(self.turns()) - {FIRST_MPS}
        instance.wait_until(
            lambda: lengths() == {FIRST_MPS: SERVER_US, other: 0}, "the server to give way", told=lengths
        )
        before = self.turns()
        instance.wait_until(
            lambda: all(turns > before[context][0] for context, (turns, _) in self.turns().items()), "turns to go on"
        )
        self.gpuctl("set", "batch", "priority=20")
        ls.do("launch", 1, *SHORT)  # a program sets its own turns from its next launch on
        instance.wait_until(lambda: lengths() == {FIRST_MPS: 0, other: GIVING_WAY_US}, "ls to give way", told=lengths)
        self.gpuctl("set", "batch", "priority=0")
        instance.wait_until(
            lambda: lengths() == {FIRST_MPS: SERVER_US, other: 0}, "the server to give way", told=lengths
        )
        ls.finish(0)
        ls.end()
        instance.wait_until(lambda: lengths()[FIRST_MPS] == 0, "the server to keep its turns", told=lengths)
        batch.finish(0)

    def test_a_program_that_a_tool_watches_keeps_the_drivers_turns(self):
        """A kernel that a profiler measures never ends in turns of 1 us (on an H200)."""
        self.start_slices()
        self.start_mps()
        self.gpuctl("set", "batch", "priority=20")
        module, tool = (str(instance.DRIVER_PROGRAMS / name) for name in ("kernel_module.so", "tool.so"))
        batch = self.shell("batch")
        batch.do("launch", 0, *LONG)
        for preloaded, us in ((module, GIVING_WAY_US), (f"{module}:{tool}", DRIVERS_US)):
            with self.subTest(us=us):
                shell = self.shell("ls", SOFTGPU_CHANNELS="1", LD_PRELOAD=preloaded)
                shell.do("launch", 0, *LONG)

                def explained(of=shell.pid):
                    return re.search(r"(\d+) us, then others'", self.gpuctl("explain", of).stdout)

                instance.wait_until(explained, "its turns")
                self.assertEqual(int(explained()[1]), us)
                shell.finish(0)
                shell.end()
        batch.finish(0)

    def test_nobody_else_is_taken_for_a_server(self):
        self.start_slices()
        pretended_mps.start(self, self.pipes)
        with self.assertRaisesRegex(AssertionError, "PermissionDenied"):
            self.call("ServeMps", stub_version=1)


class Managed(Harness):
    """The daemon starts MPS."""

    def setUp(self):
        super().setUp()
        self.env.pop("CUDA_MPS_PIPE_DIRECTORY", None)
        self.places = self.scratch / "io.gpuctl.mps"
        self.addCleanup(self.end_all_mps)

    def pid_files(self):
        return list(self.places.glob("*/nvidia-cuda-mps-control.pid"))

    def end_all_mps(self):
        for file in self.pid_files():
            os.kill(int(file.read_text()), signal.SIGTERM)
        instance.wait_until(lambda: not self.pid_files(), "MPS to be gone")

    def start_managing(self, config='daemon.mps = "manage"\n'):
        before = dict(self.env)
        self.env.update(
            PATH=f"{instance.DRIVER_PROGRAMS}:{self.env['PATH']}",
            LD_PRELOAD=str(instance.DRIVER_PROGRAMS / "kernel_module.so"),
            LD_LIBRARY_PATH=str(instance.SOFTGPU),
            SOFTGPU_CHANNELS="1",
        )
        self.start_daemon(config=config)
        self.env = before

    def turns_of_server(self):
        return self.turns().get(FIRST_MPS, (0, 0))[1]

    def says(self, what, times=1):
        instance.wait_until(lambda: self.daemon.err().count(what) == times, what, told=self.daemon.err)

    def notes(self):
        return self.gpuctl("status").stdout

    def all_mps(self):
        """By slice ("/": of all that are not isolated): its state, and how many programs are in it."""
        return {one.get("slice", "/"): (one["state"], one["programs"]) for one in self.call("GetStatus")["mps"]}

    def test_it_is_started_for_the_first_program_and_again(self):
        self.start_managing()
        self.assertIn("MPS is started for the first program of a slice", self.notes())
        self.assertEqual(self.all_mps(), {"/": ("ready", 0)})
        self.gpuctl("create-slice", "ls", "--isolation", "isolated", "--priority", 10)
        self.assertEqual(self.pid_files(), [], "nobody needs one")
        self.shell("/")
        said = "started MPS, with libgpuslice inside"
        self.says(said)
        ls = self.shell("ls")
        self.assertIn(f"MPS is in {self.places}/shared: gpuctld started it", self.notes())
        self.says("takes the length of its turns", times=2)
        instance.wait_until(lambda: self.turns_of_server() == SERVER_US, "its turns")
        self.assertIn("turns of the MPS server beside isolated programs: by the slices'", self.notes())
        self.assertIn("as gpuctld has set it", self.notes())
        self.assertEqual(self.isolated("ls") + self.isolated("/"), [True, False])
        shared = self.places / "shared/nvidia-cuda-mps-control.pid"
        os.kill(int(shared.read_text()), signal.SIGKILL)
        self.says("MPS has ended")

        def started_again():
            self.shell("/").end()
            return self.daemon.err().count(said) == 2

        instance.wait_until(started_again, "MPS to be started again")
        ls.end()

    def test_programs_of_slices_share_it_and_others_have_no_part_in_it(self):
        self.start_managing()
        self.gpuctl("create-slice", "batch")
        one, two = self.shell("batch"), self.shell("/")
        free = {key: self.env.pop(key) for key in list(self.env) if key.startswith("GPUCTL_")}
        other = SliceShell(self)
        other.do("init")
        self.env.update(free)
        quarter = (RESIDENT // 4, ENDLESS[1])
        for shell in (one, two, other):
            shell.do("launch", 0, *quarter)
        instance.wait_until(lambda: set(self.turns()) == {0, FIRST_MPS}, "turns of both", told=self.turns)
        for shell in (one, two, other):
            instance.wait_until(lambda shell=shell: len(shell.records(0)) == quarter[0], "each to run")
        self.assertEqual(self.isolated("batch") + self.isolated("/"), [False, False])
        for shell in (one, two, other):
            shell.finish()

    def test_a_program_that_a_tool_watches_joins_none(self):
        """A profiler refuses it there, and a debugger waits for the others (on an H200)."""
        self.start_managing()
        self.gpuctl("create-slice", "ls", "--isolation", "isolated")
        tool = str(instance.DRIVER_PROGRAMS / "tool.so")
        shared, watched, isolated = self.shell("/"), self.shell("/", LD_PRELOAD=tool), self.shell("ls", LD_PRELOAD=tool)
        half = (RESIDENT // 2, ENDLESS[1])
        for shell in (shared, watched, isolated):
            shell.do("launch", 0, *half)
        instance.wait_until(lambda: len(self.turns()) == 3, "turns of each", told=self.turns)
        self.assertEqual({context for context in self.turns() if context >= FIRST_MPS}, {FIRST_MPS}, self.turns())
        self.assertEqual(self.isolated("ls"), [True])
        for shell in (shared, watched, isolated):
            shell.finish()

    def test_programs_of_an_isolated_slice_share_an_mps_of_their_own(self):
        self.start_managing()
        self.gpuctl("create-slice", "ls", "--isolation", "isolated", "--priority", 10, "--reserve", 4)
        self.gpuctl("create-slice", "ls/a", "--priority", 10, "--reserve", 4, "--reserve-mode", "strict")
        self.gpuctl("create-slice", "ls/b", "--priority", 10)
        self.gpuctl("create-slice", "batch")
        batch, one, two = self.shell("batch"), self.shell("ls/a"), self.shell("ls/b")
        self.says("started MPS for slice ls, with libgpuslice inside")
        self.says("takes the length of its turns", times=2)
        batch.do("launch", 0, *ENDLESS)
        quarter = (RESIDENT // 4, ENDLESS[1])
        for shell in (one, two):
            shell.do("launch", 0, *quarter)
        for shell in (one, two):
            instance.wait_until(lambda shell=shell: len(shell.records(0)) == quarter[0], "both to run side by side")
        turns = self.turns()
        self.assertEqual(set(turns), {FIRST_MPS, FIRST_MPS + 1}, "each MPS has turns, and nobody else")
        self.assertEqual({context: us for context, (_, us) in turns.items()}, {FIRST_MPS: SERVER_US, FIRST_MPS + 1: 0})
        self.assertEqual(self.all_mps(), {"/": ("ours", 1), "ls": ("ours", 2)})
        grew = lambda: all(now > turns[context][0] for context, (now, _) in self.turns().items())  # noqa: E731
        instance.wait_until(grew, "turns to go on")
        self.assertEqual(self.isolated("ls/a") + self.isolated("ls/b") + self.isolated("batch"), [True, True, False])
        two.do("launch", 1, *LONG)
        kept = self.gpuctl_json("explain", two.pid)["client"]["usage"][0]
        self.assertEqual(kept["granted"] or kept["common_sms"], instance.SMS - 4, "the reserve of ls/a is kept from it")
        for shell in (one, two, batch):
            shell.finish()

    def test_the_environment_of_a_program_stays(self):
        self.start_managing()
        script = PROGRAM.replace("libc.getenv(name.encode()).decode()", "libc.getenv(name.encode())")
        self.start_script_in("/", script, says="0 None ").end()

    def test_a_user_keeps_another_mps(self):
        self.start_managing()
        self.shell("/")
        own = self.scratch / "own"
        own.mkdir()
        program = self.start_script_in("/", PROGRAM, says=f"0 {own} {own}", CUDA_MPS_PIPE_DIRECTORY=str(own))
        self.assertEqual(self.isolated("/"), [False, True])
        note = (
            "slice /: 1 program of it outside of gpuctld's MPS, by turns with those in it, as CUDA_MPS_PIPE_DIRECTORY"
        )
        self.assertIn(note, self.notes())
        program.end()
        instance.wait_until(lambda: note not in self.notes(), "it to be gone")

    def test_an_mps_of_somebody_else_is_used_as_it_is(self):
        pipes = self.scratch / "mps"
        pipes.mkdir()
        pretended_mps.start(self, pipes)
        self.env["CUDA_MPS_PIPE_DIRECTORY"] = str(pipes)
        self.start_managing()
        self.start_script_in("/", PROGRAM, says=f"0 {pipes} {pipes}")
        self.assertEqual(self.isolated("/"), [False])
        self.assertIn(f"MPS is in {pipes}: somebody else started it, so gpuctld starts none", self.notes())
        self.assertEqual(self.all_mps(), {"/": ("others", 1)})
        self.assertEqual(self.pid_files(), [])

    def test_the_next_daemon_goes_on_with_it(self):
        self.start_managing()
        self.shell("/")
        self.daemon.kill()
        self.start_managing()
        instance.wait_until(lambda: self.isolated("/") == [False], "the program to come back")
        self.assertIn(f"MPS is in {self.places}/shared: gpuctld started it", self.notes())
        self.says("takes the length of its turns")
        self.shell("/")
        self.assertEqual(self.isolated("/"), [False, False])
        self.assertNotIn("started MPS", self.daemon.err())

    def test_left_alone(self):
        self.start_managing(config='daemon.mps = "leave"\n')
        self.shell("/")
        self.assertEqual(self.pid_files(), [])

    def test_without_its_programs(self):
        if os.path.exists("/usr/bin/nvidia-cuda-mps-control"):
            self.skipTest("MPS is installed here")
        self.start_daemon(config='daemon.mps = "manage"\n')
        self.shell("/")
        self.assertEqual(self.notes().count("there is no nvidia-cuda-mps-control"), 1)
        self.assertNotIn("MPS", self.daemon.err())


if __name__ == "__main__":
    instance.main()
