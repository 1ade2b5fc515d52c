#!/usr/bin/env python3
"""The measurements behind docs/measurements.md; started by measure.sh, which also says what the options mean.

A step yields rows of the table: figure, target, measured. Sides that are compared take turns within one run.
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import platform
import random
import re
import signal
import statistics
import subprocess
import sys
import time

import measure_lab

KERNELS = ("vectorAdd", "matrixMul", "reduction", "histogram", "work")
# CUDA-runtime programs: scale for kernels of about 100 us and more, and the mean time between random grants. The copies
# back and the comparison on the CPU take vector_add a hundred times as long as its kernel, hence the fiercer storm.
PROGRAMS = {"reduction": (4000, 200), "matrix_mul": (20, 200), "vector_add": (400, 20)}
STORM_LIMIT_S = 40
CHECKED_STORM_S = 8
REHEARSED_STORM_LIMIT_S = 20
# Kernels of some hundred milliseconds on the software GPU, of many short block-tasks.
REHEARSAL = {"vectorAdd": ("--extent", 400_011), "matrixMul": ("--extent", "200,200,20"),
             "reduction": ("--extent", 300_101), "histogram": ("--extent", 400_003), "work": ("--extent", "1000,20")}


def middle(values):
    values = sorted(values)
    return {"p50": values[len(values) // 2], "p90": values[len(values) * 9 // 10], "max": values[-1]}


def reserve_of(sms):
    return 8 if sms >= 64 else sms // 4


# --- results in a storm of evictions ------------------------------------------------------------------------------------

def step_identical(lab):
    """Storm of evictions: results of the kernels and of static-runtime programs."""
    least = lab.size(1500, 20)
    config = "[daemon]\nlatency_target_us = 1\n"  # every kernel in its rewritten form, short ones too
    with lab.gpuctld("--evict-storm", lab.size(200, 3000), config=config):
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            arguments = (kernel, *lab.size(("--size", "large"), REHEARSAL[kernel]), "--depth", 2)
            original = lab.bench(None, *arguments, "--count", 2)
            # Evictions by the thousand, and then every single result, compared on the GPU, for some seconds.
            for check, enough, limit_s in (("last", least, STORM_LIMIT_S), ("device", 10 * least, CHECKED_STORM_S)):
                program = lab.start_bench("s", *arguments, "--seconds", 2 * STORM_LIMIT_S, "--check", check)
                usage = storm(lab, program, enough, limit_s)
                report = program.report()
                same = report["output_hash"] == original["output_hash"]
                yield storm_row(lab, kernel, report["launches"], usage,
                                f"{report['mismatches']} of {report['checked']} wrong, memory {'same' if same else 'DIFFERS'}")
    for name, (scale, storm_us) in PROGRAMS.items():
        with lab.gpuctld("--evict-storm", lab.size(storm_us, 3000), config=config):
            lab.gpuctl("create-slice", "s")
            runtime = lab.size("static", "shared")  # the software GPU serves the shared runtime only
            path = lab.build / f"tests/cuda/{name}_{runtime}"
            program = lab.start("s", path, 1_000_000, lab.size(scale, 1), limit_s=2 * STORM_LIMIT_S)
            usage = storm(lab, program, lab.size(1000, 5), STORM_LIMIT_S)
            out = program.finish()
            line = re.search(r"(\d+) rounds, (\d+) wrong", out)
            if line is None:
                raise program.failure("no result")
            yield storm_row(lab, f"{name} ({runtime} runtime)", int(line.group(1)), usage,
                            f"{line.group(2)} of {line.group(1)} wrong")


def storm(lab, program, least, limit_s):
    """Waits for so many evictions of the slice's client, or until time is up, and stops it. Its last usage."""
    deadline = time.monotonic() + lab.size(limit_s, min(limit_s, REHEARSED_STORM_LIMIT_S))
    last = {"evictions": 0, "evict_us_mean": 0, "evict_us_max": 0}
    while last["evictions"] < least and time.monotonic() < deadline and program.process.poll() is None:
        time.sleep(0.05)
        last = lab.usage("s") or last
    program.stop()
    return last


def storm_row(lab, name, launches, usage, verdict):
    lab.record(kernel=name, launches=launches, usage=usage, verdict=verdict)
    return (f"{name}: {launches} launches, {usage['evictions']} evictions, "
            f"mean {usage['evict_us_mean']:.0f} max {usage['evict_us_max']:.0f} us", "all right", verdict)


# --- time of an eviction ------------------------------------------------------------------------------------------------

def step_evict(lab):
    """From the daemon's decision to SMs free, for block-tasks of several lengths."""
    shrinks = lab.size(200, 10)
    for task_us in lab.size((10, 20, 50, 100), (5000,)):
        with lab.gpuctld():
            lab.gpuctl("create-slice", "batch")
            sized = lab.bench(None, "work", "--task-us", task_us, "--calibrate-us", lab.size(500, 100) * task_us,
                              "--count", 2, "--check", "last")
            program = lab.start_bench("batch", "work", "--extent", f"{sized['extent'][0]},{sized['extent'][1]}",
                                      "--seconds", 60, "--depth", 2, "--check", "last", "--no-gpu-time")
            lab.wait_for(lambda: (lab.usage("batch") or {}).get("holding"), "the client to run")
            time.sleep(lab.size(0.3, 1))
            times, idle, disobeyed = evict_times(lab, shrinks, lab.sms())
            kernels = lab.call("Explain", pid=lab.call("GetSlice", path="batch")["clients"][0]["pid"])["kernels"]
            histogram = lab.usage("batch")["evict_us_log2"]
            program.stop()
            wrong = program.report()["mismatches"]
        lab.record(task_us=task_us, evict_us=times, idle=idle, disobeyed=disobeyed, histogram_log2=histogram, kernels=kernels)
        if not times:
            raise RuntimeError(f"none of {shrinks} shrinks evicted anything ({disobeyed} were not obeyed)")
        at = middle(times)
        measured_us = next((k["block_task_ns"] / 1000 for k in kernels if k["name"] == "work"), 0)
        yield (f"evict, decision to SMs free, {task_us} us block-tasks ({measured_us:.1f} measured), n={len(times)}",
               f"p50 <= {20 + task_us} us", f"p50 {at['p50']:.1f}, p90 {at['p90']:.1f}, max {at['max']:.1f} us"
               + (f"; {disobeyed} NOT OBEYED" if disobeyed else "") + (f"; {wrong} WRONG" if wrong else ""))


def evict_times(lab, shrinks, sms):
    """Halves the slice and lets it grow again, over and over, at any moment of its kernels. Returns the times of the
    evictions, how many shrinks came between kernels and evicted nobody, and how many were not obeyed within a second."""
    times, idle, disobeyed = [], 0, 0
    deadline = time.monotonic() + 60
    while len(times) + idle + disobeyed < shrinks and time.monotonic() < deadline:
        grown = time.monotonic() + 1
        while (usage := lab.usage("batch"))["holding"] <= sms // 2 and time.monotonic() < grown:
            time.sleep(0.001)
        time.sleep(random.uniform(1, 3) * lab.size(0.001, 0.02))
        before = usage["evictions"]
        lab.call("SetSlice", path="batch", settings={"max": sms // 2})
        decided = time.monotonic()
        while (usage := lab.usage("batch"))["evictions"] <= before and time.monotonic() < decided + 1:
            if usage["holding"] <= sms // 2 and time.monotonic() > decided + lab.size(0.05, 0.3):
                break
        if usage["evictions"] > before:
            times.append(usage["evict_us_last"])
        elif usage["holding"] <= sms // 2:
            idle += 1
        else:
            disobeyed += 1
        lab.call("SetSlice", path="batch", settings={"max_unlimited": True})
    return times, idle, disobeyed


# --- latency of a client that fits its reserve --------------------------------------------------------------------------

def step_latency(lab):
    """LS that fits its reserve: alone, in its slice, beside batch unmanaged and in slices; batch; drift."""
    timing = ("--seconds", lab.size(4.2, 3))
    with lab.gpuctld():
        sms = lab.sms()
        reserve = reserve_of(sms)
        ls_size = lab.bench(None, "work", "--blocks", reserve, "--calibrate-us", lab.size(50, 20_000), "--count", 20)
        batch_size = lab.bench(None, "work", "--task-us", lab.size(50, 10_000), "--calibrate-us",
                               lab.size(10_000, 200_000), "--count", 5, "--check", "last")
        iterations = ls_size["extent"][1]
        arrival = ("--arrival", "periodic", "--period-us", lab.size(2000, 100_000), "--priority", "high", *timing)
        ls = ("work", "--blocks", reserve, "--iterations", iterations, *arrival)
        full = ("work", "--blocks", 8 * reserve, "--iterations", iterations, *arrival)
        batch = ("work", "--blocks", batch_size["extent"][0], "--iterations", batch_size["extent"][1], "--depth", 2,
                 "--priority", "low", "--check", "last", *timing)
        lab.gpuctl("create-slice", "ls", "--reserve", reserve)
        lab.gpuctl("create-slice", "batch")
        lab.gpuctl("create-slice", "full", "--max", reserve)
        yield (f"LS {ls_size['gpu_us']['p50']:.0f} us; batch {batch_size['gpu_us']['p50'] / 1000:.1f} ms, "
               f"{batch_size['extent'][0]} block-tasks", "", f"reserve {reserve} of {sms} SMs")
        found = {}
        for number in range(1, lab.size(2, 1) + 1):
            for name, runs in (("LS alone", [(None, ls)]), ("LS alone in its slice", [("ls", ls)]),
                               ("batch alone", [(None, batch)]),
                               ("LS beside batch, unmanaged", [(None, ls), (None, batch)]),
                               ("LS beside batch, in slices", [("ls", ls), ("batch", batch)]),
                               ("LS alone again", [(None, ls)])):
                yield latency_row(lab, found, number, name, runs)
            # Eight blocks for each reserved SM: the slice may use its reserve only, alone too.
            lab.gpuctl("set", "ls", "reserve=0")
            lab.gpuctl("set", "full", f"reserve={reserve}")
            for name, runs in (("full LS alone in its slice", [("full", full)]),
                               ("full LS beside batch, in slices", [("full", full), ("batch", batch)])):
                yield latency_row(lab, found, number, name, runs)
            lab.gpuctl("set", "full", "reserve=0")
            lab.gpuctl("set", "ls", f"reserve={reserve}")
    yield from latency_ratios(found, sms, reserve)


def latency_row(lab, found, number, name, runs):
    reports = lab.together(*runs)
    words = []
    for (_, arguments), report in zip(runs, reports):
        if "periodic" in arguments:
            found.setdefault(name, []).append(report["latency_us"])
            at = report["latency_us"]
            words.append(f"p50 {at['p50']:.0f}, p99 {at['p99']:.0f}, max {at['max']:.0f} us (n={report['launches']})")
        else:
            found.setdefault(f"{name}: rate", []).append(report["kernels_per_s"])
            words.append(f"batch {report['kernels_per_s']:.1f} kernels/s")
        found["wrong"] = found.get("wrong", 0) + report["mismatches"]
    return (f"round {number}: {name}", "", "; ".join(words))


def latency_ratios(found, sms, reserve):
    def p99(*names):
        return statistics.median(latency["p99"] for name in names for latency in found[name])

    def rate(name):
        return statistics.median(found[f"{name}: rate"])

    alone = p99("LS alone", "LS alone again")
    yield ("LS p99 in slices / alone", "<= 1.1", f"{p99('LS beside batch, in slices') / alone:.2f}")
    yield ("LS p99 in slices / alone in its slice", "",
           f"{p99('LS beside batch, in slices') / p99('LS alone in its slice'):.2f}")
    yield ("LS p99 unmanaged / alone", "", f"{p99('LS beside batch, unmanaged') / alone:.2f}")
    yield ("full LS p99 in slices / alone in its slice", "<= 1.1",
           f"{p99('full LS beside batch, in slices') / p99('full LS alone in its slice'):.2f}")
    kept = rate("LS beside batch, in slices") / rate("batch alone")
    yield ("batch in slices / its share of batch alone", ">= 0.90", f"{kept * sms / (sms - reserve):.3f}")
    yield ("batch in slices / unmanaged", "", f"{rate('LS beside batch, in slices') / rate('LS beside batch, unmanaged'):.3f}")
    yield ("wrong results", "0", str(found["wrong"]))


# --- original against rewritten -----------------------------------------------------------------------------------------

def paired(lab, arguments, pairs, burst, kernel_us):
    """Bursts of launches, plain and in slice s by turns: for each pair the samples of both bursts, as lists of dicts."""
    slot_ns = int(1000 * 1.5 * burst * kernel_us) + lab.size(15_000_000, 100_000_000)
    files = [lab.scratch / f"samples.{side}" for side in ("plain", "slice")]
    run = (*arguments, "--arrival", "bursts", "--burst", burst, "--period-us", 2 * slot_ns / 1000,
           "--count", burst * pairs, "--check", "last")
    reports = lab.together(*((side, (*run, "--samples", file)) for side, file in zip((None, "s"), files)),
                           apart_ns=slot_ns)
    if any(report["mismatches"] for report in reports):
        raise RuntimeError(f"{arguments}: wrong results")
    sides = []
    for file in files:
        names, *lines = file.read_text().splitlines()
        samples = [dict(zip(names.split(), map(float, line.split()))) for line in lines]
        sides.append([samples[at:at + burst] for at in range(0, len(samples), burst)])
    # A burst that ran into the other side's time says nothing.
    clean = [(plain, rewritten) for index, (plain, rewritten) in enumerate(zip(*sides))
             if plain[-1]["complete_ns"] < rewritten[0]["issue_ns"]
             and (index + 1 == pairs or rewritten[-1]["complete_ns"] < sides[0][index + 1][0]["issue_ns"])]
    if 2 * len(clean) < pairs:
        raise RuntimeError(f"{arguments}: {pairs - len(clean)} of {pairs} pairs of bursts ran into each other")
    return clean


def gpu_us(samples):
    return statistics.median(sample["gpu_us"] for sample in samples[len(samples) // 5:])  # the pipe fills first


def queue_us(samples):
    return (samples[-1]["complete_ns"] - samples[0]["issue_ns"]) / 1000 / len(samples)


def call_us(samples):
    return statistics.median(sample["issued_ns"] - sample["issue_ns"] for sample in samples) / 1000


def extent_for(lab, kernel, target_us):
    """The size at which a kernel takes about so long, as an option of gpuslice-bench."""
    if lab.options.rehearse:
        return ("--size", "trivial")
    if kernel == "work":
        report = lab.bench(None, kernel, "--task-us", 20, "--calibrate-us", target_us, "--count", 1, "--check", "none")
        return ("--extent", ",".join(map(str, report["extent"][:2])))
    report = lab.bench(None, kernel, "--size", "large", "--count", 10, "--depth", 2, "--check", "none")
    factor = target_us / report["gpu_us"]["p50"]
    numbers = [number for number in report["extent"] if number]
    factor **= 1 / len(numbers)  # of matrices each side
    return ("--extent", ",".join(str(min(1 << 30, round(number * factor))) for number in numbers))


def step_overhead(lab):
    """GPU time of kernels of 100 us and of 1 ms, original against rewritten by turns."""
    pairs = lab.size(15, 3)
    medians = []
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            for target_us in lab.size((130, 1000), (10_000,)):
                arguments = (kernel, *extent_for(lab, kernel, target_us), "--depth", 4)
                bursts = paired(lab, arguments, pairs, lab.size(8000 // target_us, 4), lab.size(target_us, 60_000))
                ratios = sorted(gpu_us(rewritten) / gpu_us(plain) for plain, rewritten in bursts)
                queued = statistics.median(queue_us(rewritten) / queue_us(plain) for plain, rewritten in bursts)
                plain_us = statistics.median(gpu_us(plain) for plain, _ in bursts)
                medians.append(statistics.median(ratios))
                lab.record(kernel=kernel, plain_us=plain_us, ratios=ratios, queued=queued)
                yield (f"{kernel}, {plain_us:.0f} us: rewritten / original, GPU time ({len(ratios)} pairs)", "<= 1.02",
                       f"{medians[-1]:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); {queued:.3f} of a queue's whole time")
    yield ("all of them: rewritten / original, median", "<= 1.02", f"{statistics.median(medians):.3f}")


def step_launch(lab):
    """CPU time of the launch call under gpuctl, in original form and rewritten, against plain by turns."""
    # One short block runs in its original form, being below the latency target.
    cases = (("in its original form", "<= 0.3 us", 8, lab.size(20, None)),
             ("rewritten", "<= 2.5 us", 8, lab.size(5000, 20)))
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        for name, target, blocks, iterations in cases:
            if iterations is None:
                continue
            arguments = ("work", "--blocks", blocks, "--iterations", iterations, "--no-gpu-time", "--depth", 8,
                         "--warmup", lab.size(100, 2))
            kernel_us = lab.bench(None, *arguments[:5], "--count", 10)["gpu_us"]["p50"]
            bursts = paired(lab, arguments, lab.size(15, 3), lab.size(200, 5), max(10, kernel_us))
            plain = statistics.median(call_us(one) for one, _ in bursts)
            extra = sorted(call_us(rewritten) - call_us(one) for one, rewritten in bursts)
            lab.record(case=name, plain_us=plain, extra_us=extra)
            yield (f"launch call {name}, over plain ({plain:.2f} us, {len(extra)} pairs)", target,
                   f"{statistics.median(extra):+.2f} us ({extra[0]:+.2f} to {extra[-1]:+.2f})")


# step: function, most seconds it may take
STEPS = {"evict": (step_evict, 120), "latency": (step_latency, 240), "overhead": (step_overhead, 240),
         "launch": (step_launch, 90), "identical": (step_identical, 420)}


def heading(lab):
    report = lab.bench(None, "work", "--count", 1)
    driver = "-"
    with contextlib.suppress(FileNotFoundError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")[0]
    mps = "MPS" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "no MPS"
    now = datetime.datetime.now(datetime.timezone.utc)
    return (f"{report['device']}, {report['sms']} SMs, driver {driver}, {mps}, {os.cpu_count()} cores, "
            f"Linux {platform.release()}, {now:%Y-%m-%d %H:%M} UTC")


class Table:
    """The rows so far, in table.txt after each and on stderr."""

    def __init__(self, path, title):
        self.path, self.lines = path, []
        self.add(title)

    def add(self, line):
        self.lines.append(line)
        print(line, file=sys.stderr)
        self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def run_step(lab, name, table):
    """False when the step failed; its rows until then stay."""
    step, limit_s = STEPS[name]
    began = time.monotonic()
    lab.enter(name)
    table.add(f"-- {name}: {step.__doc__.strip()}")

    def out_of_time(*_):
        raise RuntimeError(f"the step ran past {limit_s} s")

    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(limit_s)
    try:
        for figure, target, measured in step(lab):
            lab.record(row=[figure, target, measured])
            table.add(f"{figure:<86} {target:<13} {measured}")
        return True
    except (RuntimeError, OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        signal.alarm(0)
        lab.record(failed=str(error))
        table.add(f"{name}: FAILED: {error}")
        return False
    finally:
        signal.alarm(0)
        lab.leave()
        print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "out", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    names = options.steps.split(",")
    if any(name not in STEPS for name in names):
        sys.exit("steps: " + "; ".join(f"{name} ({step.__doc__.strip()})" for name, (step, _) in STEPS.items()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lab = measure_lab.Lab(options)
    lab.enter("heading")
    failed = False
    try:
        table = Table(pathlib.Path(options.out) / "table.txt", heading(lab))
        for name in names:
            failed = not run_step(lab, name, table) or failed
    finally:
        lab.leave()
    print("\n".join(table.lines))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
