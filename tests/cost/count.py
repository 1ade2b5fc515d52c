"""What libgpuslice adds to the driver calls that programs make in a loop, counted by callgrind.

    python3 -m tests.cost.count [CASE...]

prints the table of docs/design/launch-cost.md, for the build directory GPUCTL_BUILD (build): for each call, with
nothing in force and below a max, the instructions, of which with a lock, cache lines of code and of data, and system
calls. It counts what the calling thread runs from the call to its end, without what runs in the driver and the program:
so also what the C library does for libgpuslice. The counts are means of 256 calls, on a driver that does all at once
(null_device.cc). They are the same each time for the same build, or nearly so.
"""

import collections
import dataclasses
import pathlib
import re
import subprocess
import sys

from tests.system.harness import instance

COST_PROGRAMS = instance.BUILD / "tests/cost"
LONGEST_S = 120
CALLS = 256  # kCalls of hooked_calls.cc
# As small as first-level caches are anywhere; hooked_calls.cc uses twice as many lines between two calls.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
PROGRAM = "/hooked_calls"
NOT_OURS = ("libnull_device.so", "/libcuda.so.1", PROGRAM)
LOCKED = re.compile(r"\s*([0-9a-f]+):\s+(?:lock |xchg .*\()")
COLUMNS = ("locked", "code", "data", "system calls")
HEADING = f"| call | {' | '.join(('instructions', *COLUMNS, 'below a max', *COLUMNS))} |\n{'|---' * 11}|"


@dataclasses.dataclass
class Cost:
    """Of one call, in the mean."""

    instructions: float
    locked: float
    code_lines: float
    data_lines: float
    system_calls: float

    def cells(self):
        if self.instructions == 0:
            return ["0", "", "", "", ""]
        return [
            f"{self.instructions:.0f}",
            f"{self.locked:.1f}",
            f"{self.code_lines:.0f}",
            f"{self.data_lines:.0f}",
            f"{max(self.system_calls, 0):.2f}",
        ]


def cases():
    text = pathlib.Path(__file__).with_name("cases.h").read_text()
    return re.findall(r"^CASE\((\w+),", text, re.MULTILINE)


def locked_instructions(library, known={}):  # noqa: B006
    """Addresses of the instructions of a library that lock a cache line."""
    if library not in known:
        command = ["objdump", "-d", "--no-show-raw-insn", library]
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = (LOCKED.match(line) for line in code.splitlines())
        known[library] = {int(match[1], 16) for match in found if match}
    return known[library]


def read_profile(path):
    """The case and its cost, from a file that callgrind wrote of one thread."""
    events, case = [], None
    total = collections.Counter()
    executed = collections.Counter()  # (library, function, address): how often
    called = collections.Counter()  # (library, function, whether the driver or the program calls)
    library = function = callee = None
    calls = None
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("events:"):
            events = line.split()[1:]
        elif equals and key == "ob":
            library = value
        elif equals and key == "fn":
            function, callee = value, (library, None)
            if value.startswith("measured_"):
                case = value.removeprefix("measured_")
        elif equals and key == "cob":
            callee = (value, None)
        elif equals and key == "cfn":
            callee = (callee[0], value)
        elif equals and key == "calls":
            calls = int(value.split()[0])
        elif line.startswith("0x"):
            theirs = library.endswith(NOT_OURS)
            address, _, *counts = line.split()
            costs = collections.Counter(dict(zip(events, map(int, counts))))
            if calls is None:
                executed[(library, function, int(address, 16))] += costs["Ir"]
                # Where there is no valgrind this is no system call.
                if function.startswith("clock_gettime"):
                    total["sysCount"] -= costs["sysCount"]
                continue
            called[(*callee, theirs)] += calls
            # What the driver calls is the driver's.
            into_driver = callee[0].endswith(NOT_OURS)
            if library.endswith(PROGRAM) and not into_driver:
                total.update(costs)
            elif not theirs and into_driver and callee[1] != "main":
                total.subtract(costs)
            calls, callee = None, (library, None)
    return case, cost_of(total, executed, called)


def cost_of(total, executed, called):
    """`total`: of all calls into us, less those from us into the driver."""
    locked = 0
    for (library, function, address), count in executed.items():
        if library.endswith(NOT_OURS) or not pathlib.Path(library).exists():
            continue
        if address in locked_instructions(library):
            theirs, ours = called[library, function, True], called[library, function, False]
            if "libgpuslice" in library:
                theirs, ours = 0, 1
            locked += count * ours / max(1, ours + theirs)
    return Cost(
        *(
            count / CALLS
            for count in (
                total["Ir"],
                locked,
                total["I1mr"],
                total["D1mr"] + total["D1mw"],
                total["sysCount"],
            )
        )
    )


def count(test, *names, slice_path="s", valgrind="valgrind"):
    """Runs the program in a slice of a SystemTest's daemon. Returns the costs by case."""
    driver = test.scratch / "null"
    if not driver.exists():
        driver.mkdir()
        (driver / "libcuda.so.1").symlink_to(COST_PROGRAMS / "libnull_device.so")
    out = test.scratch / "callgrind"
    out.mkdir()
    env = {
        **test.env,
        "GPUCTL_SLICE": slice_path,
        "LD_PRELOAD": str(instance.BUILD / "src/libgpuslice/libgpuslice.so"),
        "LD_LIBRARY_PATH": str(driver),
        "NULL_DEVICE_DRIVER": str(instance.SOFTGPU / "libcuda.so.1"),
    }
    options = ["--collect-atstart=no", "--toggle-collect=measured_*", "--dump-after=end_of_case", "--dump-instr=yes"]
    options += ["--separate-threads=yes", "--collect-systime=msec", "--compress-strings=no", "--compress-pos=no"]
    options += ["--cache-sim=yes", *CACHES, f"--callgrind-out-file={out}/profile"]
    command = [valgrind, "-q", "--tool=callgrind", *options, COST_PROGRAMS / "hooked_calls", *names]
    program = instance.Program(command, env, test.scratch, len(test.programs))
    test.programs.append(program)
    if program.wait(LONGEST_S) != 0:
        raise AssertionError(f"exit status {program.process.returncode}: {program.err()}")
    costs = dict(read_profile(path) for path in out.glob("profile.*-01"))
    costs.pop(None, None)
    for path in out.iterdir():
        path.unlink()
    out.rmdir()
    return costs


class Table(instance.SystemTest):
    """Not a test: it prints."""

    names = ()

    def runTest(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s")
        free = count(self, *self.names)
        self.gpuctl("set", "s", "max=6")
        below = count(self, *self.names)
        print(HEADING)
        for name in cases():
            if name in free:
                print(f"| {name} | " + " | ".join(free[name].cells() + below[name].cells()) + " |", flush=True)


def main():
    Table.names = sys.argv[1:]
    test = Table()
    result = test.run()
    for _, error in (*result.errors, *result.failures):
        print(error, file=sys.stderr)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
