"""gpuctl run says which programs its slice does not limit, and what says so is not noticed by the program."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from tests.system.harness import instance
from tests.system.harness.slice_shell import SliceShell

DRIVER = instance.SOFTGPU / "libcuda.so.1"
WITH_DRIVER = f"import ctypes, time; ctypes.CDLL('{DRIVER}'); print('ready', flush=True); time.sleep(600)"
WAITING = "import time; print('ready', flush=True); time.sleep(600)"
# Its children, and signals that wait for it.
NOTICED = """
import json, os
try:
    children = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    children = None
pending = [line for line in open("/proc/self/status").read().splitlines() if line[:6] in ("SigPnd", "ShdPnd")]
print(json.dumps([children, pending, sorted(os.listdir("/proc/self/fd"))]))
"""


def watchers(program):
    """The processes that watch it."""
    found = []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (directory / "cmdline").read_bytes().split(b"\0")[0] == f"gpuctl: watches {program.pid}".encode():
                found.append(int(directory.name))
        except OSError:
            pass  # it has ended
    return found


class Unmanaged(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def run_in(self, name, *words, **more):
        return subprocess.run(
            [str(word) for word in (instance.GPUCTL, "run", "--slice", name, *words)],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=instance.PATIENCE_S * instance.SLOWER,
            **more,
        )

    def watcher_of(self, program):
        return instance.wait_until(lambda: watchers(program), "the watcher")[0]

    def gone(self, pid):
        return not pathlib.Path(f"/proc/{pid}").exists()

    def test_a_static_program(self):
        source, program = self.scratch / "p.c", self.scratch / "p"
        source.write_text("int main(void) { return 7; }\n")
        try:
            subprocess.run(["cc", "-static", source, "-o", program], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise unittest.SkipTest("no compiler here that links statically") from None
        done = self.run_in("s", program)
        self.assertEqual((done.returncode, done.stdout), (7, ""))
        self.assertEqual(
            done.stderr,
            f"gpuctl: run: '{program}' runs without gpuctl's library, so slice 's' does not limit it: "
            "it is linked statically\n",
        )
        self.assertEqual(self.run_in("s", "--quiet", program).stderr, "")

    def test_a_program_with_an_environment_of_its_own(self):
        program = self.start_in("s", "sh", "-c", 'env -i "$0" -c "$1"; :', sys.executable, WITH_DRIVER)
        instance.wait_until(lambda: "\n" in program.err(), "the line")
        self.assertRegex(
            program.err(),
            "^gpuctl: run: process [0-9]+ \\(.*\\) uses CUDA without gpuctl's library, so slice 's' does not limit it: "
            "it was started without LD_PRELOAD\n$",
        )
        instance.wait_until(lambda: not watchers(program), "the watcher to end")

    def test_a_slice_without_sms(self):
        self.gpuctl("create-slice", "none", "--max", "0")
        self.gpuctl("create-slice", "none/below")
        for name in ("none", "none/below"):
            line = f"gpuctl: run: slice '{name}' has no SMs (max=0): what it launches waits until it has some\n"
            self.assertEqual(self.run_in(name, "true").stderr, line)
        self.assertEqual(self.run_in("none", "--quiet", "true").stderr, "")
        self.assertEqual(self.run_in("s", "true").stderr, "")

    def test_the_watcher_belongs_to_nobody(self):
        program = self.start_in("s", sys.executable, "-c", WAITING)
        watcher = self.watcher_of(program)
        self.assertNotEqual(os.getsid(watcher), os.getsid(program.pid))
        self.assertNotEqual(os.getpgid(watcher), os.getpgid(program.pid))
        held = {int(fd.name): os.readlink(fd) for fd in pathlib.Path(f"/proc/{watcher}/fd").iterdir()}
        self.assertEqual(sorted(held), [0, 2], held)
        self.assertIn("pidfd", held[0])
        self.assertEqual(os.readlink(f"/proc/{watcher}/cwd"), "/")
        program.process.send_signal(signal.SIGINT)
        program.wait()
        instance.wait_until(lambda: self.gone(watcher), "the watcher to end with the program")

    def test_the_program_notices_nothing(self):
        def with_child_signals_blocked():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])

        said = []
        for quiet in (["--quiet"], []):
            done = self.run_in("s", *quiet, sys.executable, "-c", NOTICED, preexec_fn=with_child_signals_blocked)
            self.assertEqual(done.stderr, "")
            said.append(json.loads(done.stdout))
        self.assertEqual(said[0], said[1])
        self.assertIsNone(said[1][0])
        self.assertTrue(all(int(line.split()[1], 16) == 0 for line in said[1][1]), said[1][1])

    def test_a_pipe_ends_with_the_program(self):
        """run() reads the standard error until all have closed it."""
        for _ in range(10):
            self.run_in("s", "true")

    def test_a_program_that_closes_the_standard_error(self):
        program = self.start_in("s", "sh", "-c", "exec 2>&-; sleep 600")
        instance.wait_until(lambda: not os.path.exists(f"/proc/{program.pid}/fd/2"), "it to be closed")
        instance.wait_until(lambda: not watchers(program), "the watcher to end")

    def test_quiet_has_no_watcher(self):
        program = self.start_in("s", "--quiet", sys.executable, "-c", WAITING)
        instance.wait_until(lambda: "ready" in program.out(), "the program")
        self.assertEqual(watchers(program), [])

    def test_the_watcher_of_a_managed_program_ends(self):
        shell = SliceShell(self, (instance.GPUCTL, "run", "--slice", "s"))
        shell.do("init")
        instance.wait_until(lambda: not watchers(shell), "the watcher to end")
        self.assertIsNone(shell.process.poll())


if __name__ == "__main__":
    instance.main()
