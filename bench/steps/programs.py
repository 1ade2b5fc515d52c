"""Real programs, unmodified (tests/programs): are the results the same in a slice and in a storm of evictions, and how
much longer do the programs take?
"""

import contextlib
import importlib.util
import pathlib
import re
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from ..lab.lab import ALWAYS_REWRITTEN

SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/programs"
BUDGET_S = 240  # for the whole step
STORM_S = 45  # of it, kept for the storm
FIRST_RESULT_S = 40  # a program of which nothing was kept from earlier starts
BURST_S = 0.2
STARTS = 10  # pairs, in the step that measures nothing else
LAST_LINE = re.compile(
    r": (\d+) rounds, hash ([0-9a-f]{16}), loop ([0-9.]+) s, first result ([0-9.]+) s after its start"
)


class Case(NamedTuple):
    name: str
    later_starts: int  # pairs
    modules: tuple  # of Python, that it needs
    command: tuple

    def lacks(self):
        missing = [module for module in self.modules if importlib.util.find_spec(module) is None]
        if missing:
            return "no Python module " + " and ".join(missing)
        return None if pathlib.Path(self.command[0]).exists() else f"{self.command[0]} was not built"


def python(file, *options):
    return (sys.executable, str(SOURCES / file), *options)


def cases(lab):
    built = lab.build / "tests/programs"
    return (
        Case("torch_training", 3, ("torch",), python("torch_training.py")),
        Case("triton_kernel", 1, ("torch", "triton"), python("triton_kernel.py")),
        Case("triton_matmul", 1, ("torch", "triton"), python("triton_matmul.py")),
        Case("cupy_program", 2, ("cupy",), python("cupy_program.py")),
        Case("nvrtc_program", 3, (), (built / "nvrtc_program", *lab.size((800, "cubin"), (2, "ptx")))),
        Case("graph_program", 3, (), (built / "graph_program", lab.size(4000, 2))),
        Case("torch_graph", 1, ("torch",), python("torch_training.py", "--graph")),
    )


class Run:
    """A program that runs as many rounds at a time as it is told to (tests/programs/rounds.py)."""

    def __init__(self, lab, case, side, slice_path, **more):
        self.case, self.side, self.slice_path, self.rounds, self.answers = case, side, slice_path, 1, 0
        began = time.monotonic_ns()
        with environment(lab, side, case, **more):
            self.program = lab.start(slice_path, *case.command, "-", limit_s=BUDGET_S)
        self.began = began

    def first_result_s(self, seconds=FIRST_RESULT_S):
        """Seconds from the start to the first result."""
        return (int(self.line("ready", seconds).split()[1]) - self.began) / 1e9

    def line(self, word, seconds):
        """The program's next line, which begins with that word."""
        deadline = time.monotonic() + seconds
        while True:
            found = [line for line in self.program.out().split("\n")[:-1] if line.startswith(("ready ", "ran "))]
            if len(found) > self.answers:
                break
            if self.program.process.poll() is not None:
                raise self.program.failure(f"ended early with status {self.program.process.returncode}")
            if time.monotonic() > deadline:
                raise self.program.failure(f"nothing for {seconds:.0f} s")
            time.sleep(0.001)
        self.answers += 1
        if not found[self.answers - 1].startswith(word):
            raise self.program.failure(f"'{found[self.answers - 1]}' instead of '{word}'")
        return found[self.answers - 1]

    def run(self, rounds, seconds=30):
        """Runs rounds and returns their seconds."""
        self.program.process.stdin.write(f"{rounds}\n".encode())
        self.program.process.stdin.flush()
        self.rounds += rounds
        return float(self.line("ran", seconds).split()[3])

    def finish(self, seconds=20):
        """The hash of all results."""
        self.program.process.stdin.close()
        try:
            self.program.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.program.failure(f"still there {seconds} s after its end") from None
        line = LAST_LINE.search(self.program.finish())
        if line is None or int(line.group(1)) != self.rounds:
            raise self.program.failure(f"did not say that it ran {self.rounds} rounds")
        return line.group(2)

    def end(self):
        self.program.kill()


@contextlib.contextmanager
def environment(lab, side, case, **more):
    """The environment of a side. Each side has its own caches, for every front end, so they are empty at the first
    start.
    """
    caches = {
        name: str(lab.scratch / f"kept-{side}" / name.lower())
        for name in (
            "XDG_CACHE_HOME",
            "CUDA_CACHE_PATH",
            "TRITON_CACHE_DIR",
            "CUPY_CACHE_DIR",
            "PYTORCH_KERNEL_CACHE_PATH",
        )
    }
    for directory in caches.values():
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True, mode=0o700)
    paths = {}
    if case.name == "nvrtc_program" and (library := nvrtc_of_python()):
        paths["LD_LIBRARY_PATH"] = ":".join(filter(None, (lab.env.get("LD_LIBRARY_PATH"), library)))
    with lab.environment(PYTHONDONTWRITEBYTECODE="1", **caches, **paths, **more):
        yield


def nvrtc_of_python():
    """The directory of NVRTC in a Python package, if the toolkit is not here."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or pathlib.Path("/usr/local/cuda/lib64/libnvrtc.so.13").exists():
        return None
    found = [
        path
        for place in spec.submodule_search_locations or ()
        for path in pathlib.Path(place).glob("*/lib/libnvrtc.so.13")
    ]
    return str(found[0].parent) if found else None


def step_programs(lab):
    """Real programs: results and run time in a slice, alone and in a storm of evictions; start-up."""
    deadline = time.monotonic() + BUDGET_S
    ready = []
    for case in cases(lab):
        if reason := case.lacks():
            yield (f"{case.name}: NOT MEASURED", "", reason)
        else:
            ready.append(case)
    read_from_disk(lab, ready)
    plain = {}  # name: rounds and hash
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        first = {}
        for case in ready:
            yield from or_failed(case, by_turns(lab, case, deadline, plain, first))
        for case in ready:
            if case.name in first:
                yield from or_failed(case, later_starts(lab, case, deadline, first[case.name]))
    yield from in_storm(lab, [case for case in ready if case.name in plain], deadline, plain)


def or_failed(case, rows):
    """The rows of a program, or one row that says it failed: a failure should not hide the other programs."""
    try:
        yield from rows
    except (RuntimeError, OSError, ValueError, TypeError, LookupError, subprocess.SubprocessError) as error:
        text = " ".join(str(error).split())
        yield (f"{case.name}: FAILED", "", text if len(text) < 400 else f"{text[:100]} ... {text[-300:]}")


def read_from_disk(lab, ready):
    """Reads the libraries into memory, so that neither side's first start has to."""
    modules = sorted({module for case in ready for module in case.modules})
    if modules:
        program = lab.start(None, sys.executable, "-c", "import " + ", ".join(modules), limit_s=60)
        with contextlib.suppress(RuntimeError):
            program.finish()


def by_turns(lab, case, deadline, plain, first):
    """Keeps both sides running, and lets one at a time compute."""
    if time.monotonic() > deadline - STORM_S - 15:
        raise RuntimeError("no time left")
    sides = {}
    debug = lab.out / f"debug-{case.name}.txt"
    debug.unlink(missing_ok=True)
    try:
        starts = {}
        for side, slice_path, more in (("plain", None, {}), ("slice", "s", {"GPUSLICE_DEBUG": str(debug)})):
            sides[side] = Run(lab, case, side, slice_path, **more)
            starts[side] = sides[side].first_result_s()
        burst = 3
        for _ in range(2):
            seconds = sides["plain"].run(burst)
            sides["slice"].run(burst)
            burst = max(1, min(5000, round(burst * lab.size(BURST_S, 1) / max(seconds, 1e-6))))
        bursts = take_turns(sides, burst, lab.size(9, 3))
        usage = lab.usage("s")
        kernels = explain(lab, "s", case.name)
        hashes = {side: run.finish() for side, run in sides.items()}
        plain[case.name] = (sides["plain"].rounds, hashes["plain"])
        first[case.name] = starts
    finally:
        for run in sides.values():
            run.end()
    lab.record(
        program=case.name,
        rounds_per_burst=burst,
        bursts_s=bursts,
        first_start_s=starts,
        hashes=hashes,
        usage=usage,
        kernels=kernels,
    )
    each_ms = statistics.median(alone for alone, _ in bursts) / burst * 1000
    yield (
        f"{case.name}: {len(bursts)} x {burst} rounds of {each_ms:.2f} ms, alone in a slice / plain",
        "<= 1.02",
        f"{over_plain(bursts)}; results " + ("the same" if hashes["plain"] == hashes["slice"] else "DIFFER"),
    )
    forms = [kernel["form"] for kernel in kernels]
    yield (
        f"{case.name}: kernels",
        "",
        ", ".join(f"{forms.count(form)} {form}" for form in sorted(set(forms))) or "none",
    )


def take_turns(sides, rounds, pairs):
    """Runs so many bursts of so many rounds of each side. Returns their seconds, plain and in the slice."""
    bursts = []
    for number in range(pairs):
        order = ("plain", "slice") if number % 2 == 0 else ("slice", "plain")
        seconds = {side: sides[side].run(rounds) for side in order}
        bursts.append((seconds["plain"], seconds["slice"]))
    return bursts


def over_plain(bursts):
    ratios = sorted(in_slice / plain for plain, in_slice in bursts)
    return f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def explain(lab, slice_path, name):
    """The kernels of a slice's client. Their list as text goes into a file."""
    pid = lab.call("GetSlice", path=slice_path)["clients"][0]["pid"]
    text = subprocess.run(
        [lab.gpuctl_path, "explain", str(pid)], env=lab.env, capture_output=True, text=True, check=True, timeout=30
    ).stdout
    (lab.out / f"explain-{name}.txt").write_text(text, encoding="utf-8")
    return lab.call("Explain", pid=pid)["kernels"]


def start_s(lab, case, side):
    """Seconds to the first result of a program that is started only for that."""
    run = Run(lab, case, side, "s" if side == "slice" else None)
    try:
        seconds = run.first_result_s()
        run.finish()
        return seconds
    finally:
        run.end()


def later_starts(lab, case, deadline, first):
    """Starts that find the caches of the first one; the sides take turns."""
    later = []
    for number in range(case.later_starts):
        if time.monotonic() > deadline - STORM_S - 2 * max(first.values()):
            break
        seconds = {}
        for side in ("plain", "slice") if number % 2 == 0 else ("slice", "plain"):
            seconds[side] = start_s(lab, case, side)
        later.append((seconds["plain"], seconds["slice"]))
    lab.record(program=case.name, later_starts_s=later)
    at_first = f"the first {first['slice'] / first['plain']:.3f} ({first['slice']:.2f} / {first['plain']:.2f} s)"
    if not later:
        yield (f"{case.name}: start to first result, in a slice / plain", "", f"{at_first}; NO TIME for later ones")
        return
    plain_s, slice_s = (statistics.median(pair[side] for pair in later) for side in (0, 1))
    yield (
        f"{case.name}: start to first result, in a slice / plain ({len(later)} pairs)",
        "<= 1.05",
        f"{over_plain(later)}, medians {slice_s:.2f} / {plain_s:.2f} s; {at_first}",
    )


def step_starts(lab):
    """Start-up of a PyTorch program, in a slice and plain by turns."""
    case = cases(lab)[0]._replace(later_starts=STARTS)
    deadline = time.monotonic() + BUDGET_S
    if reason := case.lacks():
        yield (f"{case.name}: NOT MEASURED", "", reason)
        return
    read_from_disk(lab, [case])
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        first = {side: start_s(lab, case, side) for side in ("plain", "slice")}
        yield from later_starts(lab, case, deadline, first)


def in_storm(lab, ready, deadline, plain):
    """Runs as many rounds as the plain program ran, one program at a time. They are started together, because starting
    takes long.
    """
    with lab.gpuctld("--evict-storm", lab.size(200, 3000), config=ALWAYS_REWRITTEN):
        runs = {}
        for case in ready:
            lab.gpuctl("create-slice", slice_of(case))
            runs[case.name] = Run(lab, case, "slice", slice_of(case))
        for case in ready:
            yield from or_failed(case, storm_row(lab, case, runs[case.name], deadline, plain[case.name]))


def slice_of(case):
    return case.name.replace("_", "-")


def storm_row(lab, case, run, deadline, plain):
    rounds, expected = plain
    try:
        run.first_result_s(max(5.0, min(FIRST_RESULT_S, deadline - time.monotonic())))
        seconds = run.run(rounds - 1, max(5.0, min(30, deadline - time.monotonic())))
        usage = lab.usage(slice_of(case))
        kernels = explain(lab, slice_of(case), f"{case.name}-storm")
        found = run.finish()
    finally:
        run.end()
    lab.record(
        program=case.name, storm_s=seconds, rounds=rounds, hash=found, expected=expected, usage=usage, kernels=kernels
    )
    yield (
        f"{case.name} in a storm: {rounds} rounds, {usage['launches']} launches, {usage['evictions']} evictions",
        "the same",
        "the same results" if found == expected else f"results DIFFER: {found}, not {expected}",
    )
