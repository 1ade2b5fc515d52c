"""FLEP's Figure 7: how far off predicted durations are, by kernel, for inputs that were not learnt.

Each benchmark runs on random inputs, one after the other, under `gpuctl profile --add`, which leaves each input out in
turn. The paper trains on 100 inputs and tests on two others; fewer inputs are used here, since each is a program of its
own.
"""

import json
import math
import random
import statistics
import subprocess
import time

from .kernels import FLEP

# The paper's text gives the mean, the least and the greatest of the errors, and no others.
PAPER_MEAN, PAPER_RANGE = "6.9 %", "2.7 to 12.2 %"
INPUTS, LAUNCHES = 20, 20
# The first number of an input lies between these parts of the suite's large one, so most launches take 30 us to 1 ms.
# The paper's take 0.5 ms and more. Of launches of less than 30 us on an H100 few of a run were measured.
LEAST_PART, MOST_PART = 1 / 8, 4
A_RUN_S = 60
BEGIN_NO_BENCHMARK_AFTER_S = 480


def random_extent(rng, least, most):
    """Each number between those of two sizes, evenly on a logarithmic scale; numbers that a kernel lacks are 0."""
    return [
        round(math.exp(rng.uniform(math.log(min(low, high)), math.log(max(low, high))))) if low else 0
        for low, high in zip(least, most)
    ]


def bounds(sizes):
    """The least and the greatest input of a benchmark, from the suite's sizes of it."""
    first, *rest = sizes["large"]
    return [round(LEAST_PART * first), *sizes["small"][1:]], [MOST_PART * first, *rest]


def main_kernel(kernels):
    """Of a benchmark with several kernels, the one that took the most time in all."""
    return max(kernels, key=lambda kernel: sum(given["launches"] * given["alone_us"] for given in kernel["inputs"]))


def percent(part):
    return f"{100 * part:.1f} %"


def profile(lab, benchmark, extents, sms):
    """The kernels of a benchmark, with their errors, after runs on all of these inputs."""
    file = lab.scratch / f"{benchmark}.json"
    file.unlink(missing_ok=True)
    said = ""
    for extent in extents:
        numbers = ",".join(str(number) for number in extent if number)
        command = [lab.gpuctl_path, "--json", "profile", "-o", file, "--widths", sms]
        command += ["--add"] if file.exists() else []
        command += ["--", lab.bench_path, "run", benchmark, "--extent", numbers, "--count", LAUNCHES, "--check", "none"]
        ran = subprocess.run(list(map(str, command)), env=lab.env, capture_output=True, text=True, timeout=A_RUN_S)
        if ran.returncode != 0:
            raise RuntimeError(f"{benchmark} {numbers}: {ran.stderr.strip()}")
        said = ran.stdout.splitlines()[-1]
    return json.loads(said)["kernels"]


def step_predictions(lab):
    """Errors of predicted durations of FLEP's benchmarks, for inputs that were not learnt."""
    began = time.monotonic()
    rng = random.Random(1)
    listed = subprocess.run(
        [lab.bench_path, "list", "--json"], env=lab.env, capture_output=True, text=True, check=True, timeout=60
    )
    sizes = {kernel["name"]: kernel["sizes"] for kernel in json.loads(listed.stdout)["kernels"]}
    errors = {}
    with lab.gpuctld():
        for name in lab.size(tuple(FLEP), ("VA", "MM")):
            if time.monotonic() - began > BEGIN_NO_BENCHMARK_AFTER_S:
                break
            trivial = sizes[FLEP[name]]["trivial"]
            least, most = lab.size(bounds(sizes[FLEP[name]]), (trivial, [4 * number for number in trivial]))
            extents = [random_extent(rng, least, most) for _ in range(lab.size(INPUTS, 4))]
            kernel = main_kernel(profile(lab, FLEP[name], extents, lab.sms()))
            lab.record(benchmark=name, extents=extents, kernel=kernel)
            errors[name] = kernel["error"]
            times = [given["alone_us"] for given in kernel["inputs"]]
            yield (
                f"FLEP Figure 7, {name} ({kernel['name']}): error, {len(times)} inputs of {min(times):.0f} to"
                f" {max(times):.0f} us",
                PAPER_RANGE,
                "too few inputs" if errors[name] is None else percent(errors[name]),
            )
    known = [error for error in errors.values() if error is not None]
    yield (f"FLEP Figure 7: mean of {len(known)} benchmarks", PAPER_MEAN, percent(statistics.mean(known)))
