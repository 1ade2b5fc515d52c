"""A driver function that fails under libgpuslice's feet: one at a time, early and late, once and from then on.

A proxy (tests/injection/proxy.cc) stands in front of the software GPU's libcuda.so.1 and answers with an error where
libgpuslice calls. The program then ends as it does plainly, with right results, or with status 1 and a line that names
the driver's error, as a call that is only passed on fails for the program. It never hangs, dies, or gives wrong
results.

    GPUCTL_BUILD=build python3 -m tests.system.programs.injection_test [--full] [--function cuStreamQuery]
      [--place late] [--jobs 4]

By default each function fails in its first call and in one of the other places, by turns, with one of the errors, in
one of the programs; --full tries all of them.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

from tests.system.harness import instance, slice_shell

PROXY = instance.BUILD / "tests/injection"
FUNCTIONS = pathlib.Path(__file__).resolve().parents[3] / "src/libgpuslice/base/driver_functions.inc"
DEINITIALIZED = 4  # CUDA_ERROR_DEINITIALIZED: the answer to calls that the driver's exit handler ends
ERRORS = {"unknown": 999, "memory": 2, "failed": 719}  # CUDA_ERROR_UNKNOWN, _OUT_OF_MEMORY, _LAUNCH_FAILED
FIRST_LASTING = 5
LATE = 20
PLACES = {
    "first": (1, 1),
    "late": (LATE, 1),
    "lasting": (FIRST_LASTING, None),  # from which call on, how many
    "own": (1, None),
}  # all calls of the library's own threads
ONE_THREAD = ("calls", "graph_calls")  # programs in which all other threads are the library's
STORM_US = 2000  # between two random grants: so that the agent has something to do
LIMIT_S = 30  # a run takes well under a second
KNOWN_LIMIT_S = 5  # for one that is known to hang
CLEAN = re.compile(r": error \d+\n")
ROW = struct.Struct("64sQQQ")  # proxy.cc

Case = collections.namedtuple("Case", "program function place error")
Calls = collections.namedtuple("Calls", "all own injected", defaults=(0, 0, 0))

# What is known to go wrong: (program, function, place), whatever the error. Who mends one takes it out. ALWAYS: it is
# an error when it goes well; SOMETIMES: as threads come.
ALWAYS, SOMETIMES = True, False
KNOWN = {
    # Slots::zero_all() gives up its stream with copies in it, and the software GPU goes on with them when their context
    # has ended.
    **{("contexts", "cuStreamSynchronize", place): SOMETIMES for place in ("first", "lasting")},
}
# Programs that fail now and then with no error at all, so that they are run with --full only.
UNSTABLE = {}

options = argparse.Namespace(full=False, function=None, place=None, jobs=os.cpu_count())


def listed():
    """The functions that libgpuslice may call."""
    return re.findall(r"^X\((\w+)\)$", FUNCTIONS.read_text(), re.MULTILINE)


def read_calls(path):
    """How often libgpuslice called each function, how often not in the program's first thread, and how often it
    failed."""
    rows = ROW.iter_unpack(path.read_bytes())
    return {name.rstrip(b"\0").decode(): Calls(*counts) for name, *counts in rows}


def stacks(pid):
    """Where each thread of a process is, if there is a debugger."""
    if not shutil.which("gdb"):
        return "no gdb"
    command = [
        "gdb",
        "-p",
        str(pid),
        "-batch",
        "-ex",
        "set print frame-arguments none",
        "-ex",
        "thread apply all bt 16",
    ]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=instance.PATIENCE_S).stdout.splitlines()
    threads = "\n".join(line for line in lines if line.startswith(("#", "Thread"))).split("\nThread")
    return "\nThread".join(thread for thread in threads if '"softgpu-' not in thread)


class Injection(instance.SystemTest):
    warp_instruction_ns = 1000  # so that most kernels are evicted

    def setUp(self):
        super().setUp()
        if not (PROXY / "libinjected.so").exists():
            self.skipTest("the proxy is not built for this processor")
        self.driver = self.scratch / "driver"
        self.driver.mkdir()
        (self.driver / "libcuda.so.1").symlink_to(PROXY / "libinjected.so")
        self.lock = threading.Lock()
        self.runs = 0
        self.commands = {
            "calls": (PROXY / "calls", "code", instance.CUDA_PROGRAMS / "vector_add.fatbin"),
            "contexts": (PROXY / "calls", "contexts", instance.CUDA_PROGRAMS / "vector_add.fatbin"),
            "graph_calls": (PROXY / "graph_calls",),
            "graphs": (instance.DRIVER_PROGRAMS / "graph_storm", 2),
        }
        for program, reason in UNSTABLE.items():
            if not options.full:
                print(f"not run: {program}: {reason}", file=sys.stderr)
                del self.commands[program]

    def command(self, program, number):
        scratch = [self.scratch / f"{number}.ptx"] if self.commands[program][0].name == "calls" else []
        return (*self.commands[program], *scratch)

    def test_each_function(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        self.expected, called = {}, {}
        for program in self.commands:
            plain = self.start(*self.command(program, program))
            self.assertEqual(plain.wait(), 0, plain.err())
            self.expected[program] = plain.out()
            verdict, calls, _ = self.run_one(program, {})
            self.assertTrue(verdict is None or program in UNSTABLE, verdict)
            self.exported = calls.keys()
            called[program] = {name: count for name, count in calls.items() if count.all > 0}
        cases = self.cases(called)
        injected, failures, mended = 0, [], []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for case, (verdict, calls, detail) in zip(cases, pool.map(self.run_case, cases)):
                injected += calls.get(case.function, Calls()).injected > 0
                known = case[:3] in KNOWN
                if verdict and not known:
                    failures.append(case)
                    print(f"FAILED {' '.join(case)}: {verdict}\n{detail}", file=sys.stderr, flush=True)
                elif verdict:
                    print(f"known: {' '.join(case)}: {verdict}", file=sys.stderr)
                elif known and KNOWN[case[:3]] == ALWAYS:
                    mended.append(case)
        self.assertIsNone(self.daemon.process.poll(), "gpuctld ended")
        self.gpuctl("status")
        for program in self.commands.keys() - UNSTABLE.keys():
            self.assertIsNone(self.run_one(program, {})[0])
        everywhere = set().union(*called.values())
        missing = [name for name in listed() if name not in everywhere]
        print(f"{len(cases)} runs, an error in {injected} of them; {len(everywhere)} functions", file=sys.stderr)
        print("never called:", *(name for name in missing if name in self.exported), file=sys.stderr)
        print("not in this driver:", *(name for name in missing if name not in self.exported), file=sys.stderr)
        self.assertEqual(failures, [])
        self.assertEqual(mended, [], "take them out of KNOWN")
        if not (options.function or options.place):
            self.assertGreater(injected, len(cases) / 2)  # what the library's threads call depends on the time

    def test_an_error_while_nothing_is_granted(self):
        """An error of one call leaves the launch on the GPU. It still ends, though nothing is granted to it."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        inject = {"FUNCTION": "cuStreamQuery", "ERROR": ERRORS["failed"], "AFTER": 5}
        env = self.injected(self.scratch / "calls", {f"INJECT_{key}": str(value) for key, value in inject.items()})
        size = ("--blocks", 128, "--iterations", 10000, "--warmup", 0)
        program = self.start_in(
            "s", instance.BENCH, "run", "work", *size, "--count", 1, "--announce", "--json", env=env
        )
        instance.wait_until(self.daemon_heard_of_a_fault, "the error to be reported")
        self.gpuctl("set", "s", "max=0")
        self.assertRightResults(program.report(LIMIT_S))

    def test_a_call_that_lasts_longer_than_an_exit_waits_is_the_last(self):
        """The agent comes back from a driver call when the driver's exit handler has run. It then calls the driver no
        more."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        shells = {}
        for function in ("cuStreamQuery", "cuCtxSetCurrent"):
            path = self.scratch / f"{function}.calls"
            inject = {"FUNCTION": function, "ERROR": DEINITIALIZED, "OWN_THREADS": 1, "AT_EXIT": 1}
            env = self.injected(path, {f"INJECT_{key}": str(value) for key, value in inject.items()})
            env["SOFTGPU_STRICT_EXIT"] = "1"
            shells[function] = slice_shell.SliceShell(self, [instance.GPUCTL, "run", "--slice", "s"], **env)
            shells[function].do("init")
            shells[function].do("launch", 0, 1, 1)
            instance.wait_until(lambda: self.injections(path, function) > 0, "the agent's call")
        for shell in shells.values():  # their exits wait at the same time
            shell.process.stdin.close()
        for function, shell in shells.items():
            with self.subTest(function):
                self.assertEqual(shell.process.wait(instance.PATIENCE_S), 0, shell.err())

    def injections(self, path, function):
        return read_calls(path)[function].injected

    def test_an_agent_that_is_over_calls_nothing(self):
        """A context may go once its agent says that it is over. So the agent has nothing to undo in the driver."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.expected = {"contexts": "calls: 12 results, 0 wrong\n"}
        verdict, calls, detail = self.run_one("contexts", {})
        self.assertIsNone(verdict, detail)
        agents = calls["cuCtxSetCurrent"].own  # the first call of each
        self.assertGreater(agents, 1)
        self.assertLessEqual(calls["cuThreadExchangeStreamCaptureMode"].own, agents)

    def injected(self, calls, env):
        """The environment of a program with the proxy in front of its driver, which counts calls in a file."""
        return {
            **self.env,
            **env,
            "GPUCTL_SOFTGPU": str(self.driver),
            "INJECT_DRIVER": str(instance.SOFTGPU / "libcuda.so.1"),
            "INJECT_CALLS": str(calls),
        }

    def daemon_heard_of_a_fault(self):
        return self.call("GetStatus")["faults"] > 0

    def cases(self, called):
        """All of them, or for each function one in its first call and one in another place. That goes by turns, as
        programs and errors do.
        """
        everything = []
        first, *others = PLACES
        for number, function in enumerate(listed()):
            if options.function and function != options.function:
                continue
            by_turns = (first, others[number % len(others)])
            for place, (after, _) in PLACES.items():
                if place not in ([options.place] if options.place else PLACES if options.full else by_turns):
                    continue
                some = [
                    Case(program, function, place, error)
                    for program, calls in called.items()
                    for error in ERRORS
                    if self.reaches(program, calls.get(function, Calls()), place, after)
                ]
                if some:
                    everything.append(some)
        if options.full:
            return [case for some in everything for case in some]
        return [some[number % len(some)] for number, some in enumerate(everything)]

    def reaches(self, program, calls, place, after):
        return program in ONE_THREAD and calls.own > 0 if place == "own" else calls.all >= after

    def run_case(self, case):
        after, count = PLACES[case.place]
        env = {"INJECT_FUNCTION": case.function, "INJECT_ERROR": str(ERRORS[case.error]), "INJECT_AFTER": str(after)}
        if count is not None:
            env["INJECT_COUNT"] = str(count)
        if case.place == "own":
            env["INJECT_OWN_THREADS"] = "1"
        return self.run_one(case.program, env, KNOWN_LIMIT_S if case[:3] in KNOWN else LIMIT_S)

    def run_one(self, program, env, limit=LIMIT_S):
        """What was wrong with a run, or None; the calls it made; and what tells more."""
        with self.lock:
            self.runs += 1
            number = self.runs
            path = self.scratch / f"{number}.calls"
            started = self.start_in("s", *self.command(program, number), env=self.injected(path, env))
        detail = ""
        try:
            status = started.wait(limit)
            verdict = self.verdict(program, status, started)
        except subprocess.TimeoutExpired:
            verdict, detail = "it hangs", stacks(started.pid)
            started.kill()
        calls = read_calls(path) if path.exists() else {}
        return verdict, calls, started.err() + started.out() + detail

    def verdict(self, program, status, started):
        if status < 0:
            return f"it died of signal {-status}"
        if status == 0:
            return None if started.out() == self.expected[program] else "it ended well, with another output"
        if status == 1:
            return None if CLEAN.search(started.err()) else "it ended without a word"
        return f"wrong results, status {status}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--function")
    parser.add_argument("--place", choices=PLACES)
    parser.add_argument("--jobs", type=int, default=options.jobs)
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    instance.main()
