"""Storms of evictions: whether they change results (they must not), and how long an eviction takes."""

import random
import re
import time

from ..lab.lab import ALWAYS_REWRITTEN, KERNELS, PREEMPTIBLE

# CUDA-runtime programs: scale for kernels of about 100 us and more, and the mean time between random grants. The copies
# back and the comparison on the CPU take vector_add a hundred times as long as its kernel, hence the fiercer storm.
PROGRAMS = {"reduction": (4000, 200), "matrix_mul": (20, 200), "vector_add": (400, 20)}
STORM_LIMIT_S = 40
CHECKED_STORM_S = 8
SUITE_STORM_S = 6
REHEARSED_STORM_LIMIT_S = 20
AT_ONCE = 8
CROWD_LIMIT_S = 30
# Kernels of some hundred milliseconds on the software GPU, with many short block-tasks.
REHEARSAL = {
    "vectorAdd": ("--extent", 400_011),
    "matrixMul": ("--extent", "200,200,20"),
    "reduction": ("--extent", 300_101),
    "histogram": ("--extent", 400_003),
    "work": ("--extent", "1000,20"),
}


def middle(values):
    values = sorted(values)
    return {"p50": values[len(values) // 2], "p90": values[len(values) * 9 // 10], "max": values[-1]}


def step_identical(lab):
    """Storm of evictions: results of the kernels and of static-runtime programs."""
    least = lab.size(1500, 20)
    with lab.gpuctld("--evict-storm", lab.size(200, 3000), config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            arguments = (kernel, *lab.size(("--size", "large"), REHEARSAL[kernel]), "--depth", 2)
            original = lab.bench(None, *arguments, "--count", 2)
            # Makes thousands of evictions, and then compares every single result on the GPU, for some seconds.
            for check, enough, limit_s in (("last", least, STORM_LIMIT_S), ("device", 10 * least, CHECKED_STORM_S)):
                program = lab.start_bench("s", *arguments, "--seconds", 2 * STORM_LIMIT_S, "--check", check)
                usage = storm(lab, program, enough, limit_s)
                report = program.report()
                same = report["output_hash"] == original["output_hash"]
                yield storm_row(
                    lab,
                    kernel,
                    report["launches"],
                    usage,
                    f"{report['mismatches']} of {report['checked']} wrong, memory {'same' if same else 'DIFFERS'}",
                )
    for name, (scale, storm_us) in PROGRAMS.items():
        with lab.gpuctld("--evict-storm", lab.size(storm_us, 3000), config=ALWAYS_REWRITTEN):
            lab.gpuctl("create-slice", "s")
            runtime = lab.size("static", "shared")  # the software GPU serves the shared runtime only
            path = lab.build / f"tests/cuda/{name}_{runtime}"
            program = lab.start("s", path, 1_000_000, lab.size(scale, 1), limit_s=2 * STORM_LIMIT_S)
            usage = storm(lab, program, lab.size(1000, 5), STORM_LIMIT_S)
            out = program.finish()
            line = re.search(r"(\d+) rounds, (\d+) wrong", out)
            if line is None:
                raise program.failure("no result")
            yield storm_row(
                lab,
                f"{name} ({runtime} runtime)",
                int(line.group(1)),
                usage,
                f"{line.group(2)} of {line.group(1)} wrong",
            )


def step_storms(lab):
    """Storm of evictions over the suite: results, and how long an eviction takes."""
    total, means = 0, []
    with lab.gpuctld("--evict-storm", lab.size(200, 3000), config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        for kernel in lab.kernels():
            program = lab.start_bench(
                "s", kernel, "--size", lab.size("large", "trivial"), "--depth", 2, "--seconds", 40, "--check", "last"
            )
            try:
                program.wait_launching()
                usage = storm(lab, program, lab.size(400, 3), SUITE_STORM_S)
                report = program.report()
            except RuntimeError as error:  # of one kernel, which should not hide the others
                yield (f"{kernel}: NOT MEASURED", "", str(error)[:120])
                continue
            total += usage["evictions"]
            means.append(usage["evict_us_mean"])
            yield storm_row(
                lab, kernel, report["launches"], usage, f"{report['mismatches']} of {report['checked']} wrong"
            )
    yield ("evictions in all", ">= 10000", str(total))
    yield ("mean of the kernels' mean eviction times", "<= 40 us", f"{sum(means) / len(means):.0f} us")


def step_crowd(lab):
    """Eight programs at a time on one GPU, from their first launch on: all end, and all results are right."""
    kernels = lab.size(lab.kernels(), ["vectorAdd", "work", "reduction"])
    with lab.gpuctld(config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        right, waiting, running = 0, list(kernels), []
        while waiting or running:
            while waiting and len(running) < lab.size(AT_ONCE, 2):
                kernel = waiting.pop(0)
                running.append(
                    (
                        kernel,
                        lab.start_bench(
                            "s",
                            kernel,
                            "--size",
                            lab.size("small", "trivial"),
                            "--depth",
                            2,
                            "--seconds",
                            2,
                            "--check",
                            "last",
                            limit_s=CROWD_LIMIT_S,
                        ),
                    )
                )
            kernel, program = running.pop(0)
            try:
                wrong = program.report()["mismatches"]
            except RuntimeError as error:  # of one program, which should not hide the others
                yield (f"{kernel}: FAILED", "", str(error)[:160])
                continue
            right += wrong == 0
            if wrong:
                yield (f"{kernel}: WRONG", "0", str(wrong))
        yield (f"programs that ended with the right results, of {len(kernels)}", str(len(kernels)), str(right))


def storm(lab, program, least, limit_s):
    """Waits for so many evictions of the slice's client, or until time is up, and stops it. Returns its last usage."""
    deadline = time.monotonic() + lab.size(limit_s, min(limit_s, REHEARSED_STORM_LIMIT_S))
    last = {"evictions": 0, "evict_us_mean": 0, "evict_us_max": 0}
    while last["evictions"] < least and time.monotonic() < deadline and program.process.poll() is None:
        time.sleep(0.05)
        last = lab.usage("s") or last
    program.stop()
    return last


def storm_row(lab, name, launches, usage, verdict):
    lab.record(kernel=name, launches=launches, usage=usage, verdict=verdict)
    return (
        f"{name}: {launches} launches, {usage['evictions']} evictions, "
        f"mean {usage['evict_us_mean']:.0f} max {usage['evict_us_max']:.0f} us",
        "all right",
        verdict,
    )


def step_evict(lab):
    """From the daemon's decision to SMs free, for block-tasks of several lengths."""
    shrinks = lab.size(200, 10)
    for task_us in lab.size((10, 20, 50, 100), (5000,)):
        with lab.gpuctld(config=PREEMPTIBLE), lab.company():
            lab.gpuctl("create-slice", "batch")
            sized = lab.bench(
                None,
                "work",
                "--task-us",
                task_us,
                "--calibrate-us",
                lab.size(500, 100) * task_us,
                "--count",
                2,
                "--check",
                "last",
            )
            program = lab.start_bench(
                "batch",
                "work",
                "--extent",
                f"{sized['extent'][0]},{sized['extent'][1]}",
                "--seconds",
                60,
                "--depth",
                2,
                "--check",
                "last",
                "--no-gpu-time",
            )
            lab.wait_for(lambda: (lab.usage("batch") or {}).get("holding"), "the client to run")
            time.sleep(lab.size(0.3, 1))
            times, idle, disobeyed = evict_times(lab, shrinks, lab.sms())
            kernels = lab.call("Explain", pid=lab.call("GetSlice", path="batch")["clients"][0]["pid"])["kernels"]
            histogram = lab.usage("batch")["evict_us_log2"]
            program.stop()
            wrong = program.report()["mismatches"]
        lab.record(
            task_us=task_us, evict_us=times, idle=idle, disobeyed=disobeyed, histogram_log2=histogram, kernels=kernels
        )
        if not times:
            raise RuntimeError(f"none of {shrinks} shrinks evicted anything ({disobeyed} were not obeyed)")
        at = middle(times)
        measured_us = next((k["block_task_ns"] / 1000 for k in kernels if k["name"] == "work"), 0)
        yield (
            f"evict, decision to SMs free, {task_us} us block-tasks ({measured_us:.1f} measured), n={len(times)}",
            f"p50 <= {20 + task_us} us",
            f"p50 {at['p50']:.1f}, p90 {at['p90']:.1f}, max {at['max']:.1f} us"
            + (f"; {disobeyed} NOT OBEYED" if disobeyed else "")
            + (f"; {wrong} WRONG" if wrong else ""),
        )


def evict_times(lab, shrinks, sms):
    """Halves the slice and lets it grow again, repeatedly, at any moment of its kernels. Returns the times of the
    evictions, how many shrinks came between kernels and evicted nothing, and how many were not obeyed within a second.
    """
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
