"""A private gpuctld on a software GPU of its own, and programs that run under it: what every system test starts with.

The build directory comes from GPUCTL_BUILD. Everything lives in one scratch directory; the end of a test ends every
process it started.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from bench.lab.client import Connection, Failed
from bench.lab.lab import ALWAYS_REWRITTEN

BUILD = pathlib.Path(os.environ.get("GPUCTL_BUILD", "build")).resolve()
GPUCTL = BUILD / "src/gpuctl/gpuctl"
GPUCTLD = BUILD / "src/gpuctld/gpuctld"
SOFTGPU = BUILD / "softgpu"
BENCH = BUILD / "kernels/gpuslice-bench"
CUDA_PROGRAMS = BUILD / "tests/cuda"
DRIVER_PROGRAMS = BUILD / "tests/driver"

SMS = 8
# Beside ALWAYS_REWRITTEN: block-tasks count as short, as they do on a GPU: workers claim them without having looked.
ALL_SHORT = ALWAYS_REWRITTEN + "lab.block_target_us = 1000000\n"
SLOW_S = 5  # a test that takes longer says so
# With sanitizers, what is to be watched while it runs is to take as much longer as whoever watches it.
SLOWER = 5 if os.environ.get("GPUCTL_SANITIZER_RUNTIME") else 1
PATIENCE_S = 60  # for what should take well under a second, on a machine with much else to do


def wait_until(condition, what, seconds=PATIENCE_S, interval=0.01, told=None):
    """The first true value of condition(), asked again and again. What `told` returns is part of the error."""
    seconds *= SLOWER
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}{f' {told()}' if told else ''}")
        time.sleep(interval)


class Program:
    """A program that was started, with its output in files; a gpuslice-bench prints one JSON object."""

    def __init__(self, command, env, scratch, number, uid=None, session=False):
        self.out_path = scratch / f"{number}.out"
        self.err_path = scratch / f"{number}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
            self.process = subprocess.Popen(
                [str(part) for part in command], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=session, **identity
            )  # fmt: skip
        self.pid = self.process.pid

    def out(self):
        return self.out_path.read_text(errors="replace")

    def err(self):
        return self.err_path.read_text(errors="replace")

    def kib(self, what):
        """An amount of memory that /proc/PID/status has, such as VmHWM."""
        with open(f"/proc/{self.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(what + ":"))

    def wait(self, seconds=240):
        return self.process.wait(seconds * SLOWER)

    def wait_started(self):
        """Until a gpuslice-bench with --announce has begun its measured launches."""

        def started():
            if self.process.poll() is not None:
                raise AssertionError(f"ended early with {self.process.returncode}: {self.err()}")
            return "started" in self.err()

        wait_until(started, "the program to start")

    def stop(self):
        """Ends a gpuslice-bench in good order and returns its report."""
        self.process.send_signal(signal.SIGTERM)
        return self.report()

    def report(self, seconds=240):
        """Waits for a gpuslice-bench and returns what it printed."""
        status = self.wait(seconds)
        if status != 0:
            raise AssertionError(f"exit status {status}: {self.err()}{self.out()}")
        return json.loads(self.out())

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


class Conversation:
    """A program that is told what to do, a command a line, and answers each with one line. It ends with the test."""

    def __init__(self, test, command, env):
        self.errors = tempfile.TemporaryFile("w+")
        test.addCleanup(self.errors.close)
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.pid = self.process.pid
        test.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, *words):
        """The line that answers a command."""
        self.tell(*words)
        return self.answer(words)

    def tell(self, *words):
        """A command whose answer is read later."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self, to):
        """The next line of the program; a program that says nothing for PATIENCE_S is ended."""
        hung = threading.Timer(PATIENCE_S, self.process.kill)
        hung.start()
        line = self.process.stdout.readline()
        hung.cancel()
        if not line:
            raise AssertionError(f"no answer to {to}: exit status {self.process.wait()}: {self.err()}")
        return line.rstrip("\n")

    def err(self):
        self.errors.seek(0)
        return self.errors.read()


class SystemTest(unittest.TestCase):
    """Has a scratch directory and a software GPU for itself; start_daemon() starts a daemon that manages it."""

    warp_instruction_ns = None  # the software GPU's speed; None: its default

    def setUp(self):
        self.addCleanup(self.say_if_slow, time.monotonic())
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="gpuctl-test."))
        self.addCleanup(self.remove_scratch)
        self.socket = self.scratch / "io.gpuctl"
        self.state = self.scratch / "state"
        self.programs = []
        self.daemon = None
        self.addCleanup(self.end_all)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("GPUCTL_", "GPUSLICE_"))}
        self.env.update(
            SOFTGPU_TABLE=str(self.scratch / "softgpu"),
            SOFTGPU_SMS=str(SMS),
            XDG_CACHE_HOME=str(self.scratch / "cache"),
            GPUCTL_SOCKET=str(self.socket),
            GPUSLICE_BACKGROUND="0",  # what a program's kernels can be evicted with is there from its first launch on
        )
        if self.warp_instruction_ns is not None:
            self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = str(self.warp_instruction_ns)

    def env_of_others(self):
        """For a program built elsewhere that is to load what we built: with sanitizers that needs their runtime."""
        runtime = os.environ.get("GPUCTL_SANITIZER_RUNTIME")
        if not runtime:
            return self.env
        # What such a program does not give back at its end is its own affair.
        return {**self.env_with_sanitizer_option("detect_leaks=0"), "LD_PRELOAD": runtime}

    def env_with_sanitizer_option(self, option):
        """With one option more for the sanitizer, if one is there."""
        names = ("ASAN_OPTIONS", "TSAN_OPTIONS")
        return {**self.env, **{name: ":".join(filter(None, (self.env.get(name), option))) for name in names}}

    def say_if_slow(self, start):
        seconds = time.monotonic() - start
        if seconds > SLOW_S:
            print(f"slow: {seconds:.1f} s: {self.id()}", file=sys.stderr)

    def remove_scratch(self):
        """The compile helper of a program that was killed may put something there until it notices."""

        def is_gone():
            shutil.rmtree(self.scratch, ignore_errors=True)
            return not self.scratch.exists()

        wait_until(is_gone, f"{self.scratch} to be removed")

    def end_all(self):
        for program in self.programs:
            program.kill()

    def start(self, *command, env=None):
        """Starts a program that knows nothing of slices, with the software GPU as its CUDA driver."""
        environment = dict(env if env is not None else self.env)
        paths = [str(SOFTGPU), environment.get("LD_LIBRARY_PATH")]
        environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        program = Program(command, environment, self.scratch, len(self.programs))
        self.programs.append(program)
        return program

    def start_in(self, slice_path, *command, env=None, uid=None):
        """Starts a program under gpuctl run. `uid`: of another user."""
        command = [GPUCTL, "run", "--slice", slice_path, *command]
        program = Program(command, env or self.env, self.scratch, len(self.programs), uid)
        self.programs.append(program)
        return program

    def start_idle_in(self, slice_path):
        """Starts a program that has used the GPU and has nothing more to do."""
        program = self.start_in(slice_path, BUILD / "tests/random/random-kernels", "0:1", "--linger")
        wait_until(lambda: "done" in program.err(), "the idle program to be idle")
        return program

    def env_of_refusal(self, function, after):
        """The environment of a program whose driver refuses one call of the library's: the one with this number."""
        proxy = BUILD / "tests/injection/libinjected.so"
        if not proxy.exists():
            self.skipTest("the proxy is not built for this processor")
        driver = self.scratch / "driver"
        driver.mkdir(exist_ok=True)
        if not (driver / "libcuda.so.1").exists():
            (driver / "libcuda.so.1").symlink_to(proxy)
        inject = {"FUNCTION": function, "ERROR": 1, "AFTER": after, "COUNT": 1}
        inject["CALLS"] = self.scratch / f"calls-{function}-{after}"  # counts go on in a file that is there
        inject["DRIVER"] = SOFTGPU / "libcuda.so.1"
        env = {f"INJECT_{key}": str(value) for key, value in inject.items()}
        return {"GPUCTL_SOFTGPU": str(driver), **env}

    def start_script_in(self, slice_path, script, says="ready", **env):
        """Starts a Conversation with a Python program, under gpuctl run. `says`: its first line; None: it is left."""
        command = [GPUCTL, "run", "--slice", slice_path, sys.executable, "-c", script]
        program = Conversation(self, command, {**self.env_of_others(), **env})
        if says is not None:
            self.assertEqual(program.answer("its start"), says)
        return program

    def start_bench(self, slice_path, *arguments):
        """gpuslice-bench run ARGUMENTS --json, in a slice or, with None, without gpuctl."""
        command = [BENCH, "run", *arguments, "--json"]
        return self.start(*command) if slice_path is None else self.start_in(slice_path, *command)

    def start_daemon(self, *options, config=ALWAYS_REWRITTEN, wait=True, session=False, before=()):
        """`session`: in one of its own. `before`: a command that becomes the daemon."""
        path = self.scratch / "gpuctl.toml"
        path.write_text(config)
        options = ("--config", path, *options)
        command = [*before, GPUCTLD, "--socket", self.socket, "--state", self.state, "--software-gpu", *options]
        program = Program(command, self.env, self.scratch, len(self.programs), session=session)
        self.programs.append(program)
        self.daemon = program
        if wait:

            def answers():
                if program.process.poll() is not None:
                    raise AssertionError(f"gpuctld ended with {program.process.returncode}: {program.err()}")
                return self.gpuctl("status", check=False).returncode == 0

            wait_until(answers, "gpuctld to answer")
        return program

    def gpuctl(self, *arguments, check=True):
        """Runs a verb to its end."""
        done = subprocess.run(
            [str(GPUCTL), *map(str, arguments)],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"gpuctl {' '.join(map(str, arguments))}: {done.returncode}: {done.stderr}{done.stdout}"
            )
        return done

    def gpuctl_json(self, *arguments):
        return json.loads(self.gpuctl(*arguments, "--json").stdout)

    def call(self, method, **parameters):
        """One Varlink call on a connection of its own, without a gpuctl process: a millisecond. Returns the reply."""
        if self.daemon.process.poll() is not None:
            raise AssertionError(f"gpuctld ended with {self.daemon.process.returncode}: {self.daemon.err()}")
        connection = Connection(self.socket, PATIENCE_S)
        try:
            return connection.call(method, **parameters)
        except Failed as failure:
            raise AssertionError(str(failure)) from failure
        finally:
            connection.close()

    def clients(self, slice_path):
        return self.call("GetSlice", path=slice_path)["clients"]

    def usage(self, slice_path, pid):
        """What the daemon knows of one client's use of the GPU, or None while it is not attached."""
        for client in self.clients(slice_path):
            if client["pid"] == pid and client["usage"]:
                return client["usage"][0]
        return None

    def ended(self, slice_path, programs):
        """What is said of the slice once so many programs in it and below it have ended."""

        def known():
            said = self.call("GetSlice", path=slice_path)["slice"]
            return said if said["ended"] == programs else None

        return wait_until(known, f"{programs} programs to have ended")

    def evictions_of(self, slice_path, program):
        return (self.usage(slice_path, program.pid) or {"evictions": 0})["evictions"]

    def assertAllRight(self, program, name):
        """Ends a program that runs until SIGTERM and then says as `name` how many of its results were wrong."""
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertRegex(program.out(), rf"^{name}: [1-9]\d* results, 0 wrong$")
        print(program.out().strip(), file=sys.stderr)

    def kernels_of(self, program, *names):
        """What gpuctl explain says of a program's kernels, once there are any, and those of all these names.

        Nothing is known of a program until it attaches itself. gpuctl run does before, for a moment, in the same
        process."""

        def known():
            if program.process.poll() is not None:
                raise AssertionError(f"ended early with {program.process.returncode}: {program.err()}")
            said = self.gpuctl("explain", program.pid, "--json", check=False)
            if said.returncode != 0:
                self.assertIn("is not attached to a slice", said.stderr)
                return None
            kernels = json.loads(said.stdout)["kernels"]
            return kernels if {kernel["name"] for kernel in kernels} >= set(names) else None

        return wait_until(known, "its kernels to be explained")

    def assertRightResults(self, report):
        self.assertEqual(report["mismatches"], 0, report["first_mismatch"])
        self.assertGreater(report["checked"], 0)


class TimedOrNot(unittest.TestLoader):
    """Takes the classes whose names begin with Timed alone, or all others."""

    def __init__(self, timed):
        super().__init__()
        self.timed = timed

    def loadTestsFromTestCase(self, case):
        fits = case.__name__.startswith("Timed") == self.timed
        return super().loadTestsFromTestCase(case) if fits else self.suiteClass()


def main():
    """Runs the tests of the calling file: with --timed those that measure time and run alone, with --untimed all others
    (tests/system/meson.build)."""
    loader = unittest.defaultTestLoader
    for option in ("--timed", "--untimed"):
        if option in sys.argv:
            sys.argv.remove(option)
            loader = TimedOrNot(option == "--timed")
    result = unittest.main(verbosity=2, exit=False, testLoader=loader).result
    if result.skipped and result.testsRun == len(result.skipped):
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
