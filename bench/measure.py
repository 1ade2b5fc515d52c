"""The measurements behind docs/engineering-notes.md. scripts/measure.sh starts this, and explains the options.

A step yields rows of the table: figure, target, measured value. Sides that are compared take turns within one run.
"""

import argparse
import contextlib
import datetime
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

from .lab.lab import Lab
from .lab.time_limit import OutOfTime, time_limit
from .papers import (
    curve,
    effisha_figures,
    evictions,
    factors,
    flep_figures,
    frs,
    remapping,
    schedulers,
    smguard,
    turnarounds,
)
from .steps import (
    controller,
    cpu_bound,
    handover,
    issue_slots,
    killed,
    latency,
    memcheck,
    occupancy,
    opaque,
    overhead,
    programs,
    random_kernels,
    screen,
    side_by_side,
    sim_pairs,
    storms,
    swap,
    time_slices,
    two_gpus,
)

# step: function, most seconds it may take
STEPS = {
    "evict": (storms.step_evict, 120),
    "latency": (latency.step_latency, 240),
    "killed": (killed.step_killed, 560),
    "overhead": (overhead.step_overhead, 240),
    "launch": (overhead.step_launch, 120),
    "cpubound": (cpu_bound.step_cpu_bound, 1800),
    "identical": (storms.step_identical, 420),
    "suite": (overhead.step_suite, 400),
    "suitealone": (overhead.step_suite_alone, 400),
    "sizes": (overhead.step_sizes, 120),
    "storms": (storms.step_storms, 400),
    "crowd": (storms.step_crowd, 100),
    "opaque": (opaque.step_opaque, 120),
    "programs": (programs.step_programs, 310),
    "starts": (programs.step_starts, 300),
    "timeslice": (time_slices.step_timeslice, 100),
    "memcheck": (memcheck.step_memcheck, 150),
    "random": (random_kernels.step_random, 3600),
    "schedulers": (schedulers.step_schedulers, 180),
    "handover": (handover.step_handover, 120),
    "frs": (frs.step_frs, 560),
    "effisha": (effisha_figures.step_effisha, 180),
    "evictions": (evictions.step_evictions, 300),
    "factors": (factors.step_factors, 480),
    "curve": (curve.step_curve, 360),
    "curvebytime": (curve.step_curve_by_time, 120),
    "effisha10": (factors.step_effisha_10, 240),
    "flep": (flep_figures.step_flep, 540),
    "reorder": (flep_figures.step_reorder, 300),
    "smguard": (smguard.step_smguard, 540),
    "smguard17": (turnarounds.step_smguard_17, 400),
    "remapping": (remapping.step_remapping, 540),
    "slots": (issue_slots.step_slots, 300),
    "occupancy": (occupancy.step_occupancy, 560),
    "sidebyside": (side_by_side.step_side_by_side, 120),
    "simpairs": (sim_pairs.step_sim_pairs, 1000),
    "quotas": (controller.step_quotas, 150),
    "weights": (controller.step_weights, 300),
    "freeze": (controller.step_freeze, 150),
    "memory": (controller.step_memory, 100),
    "accounts": (controller.step_accounts, 100),
    "devices": (two_gpus.step_devices, 120),
    "admission": (two_gpus.step_admission, 90),
    "swap": (swap.step_swap, 280),
    "kept": (swap.step_kept, 60),
    "energy": (swap.step_energy, 120),
    "screen": (screen.step_screen, 200),
}
STANDARD = ("evict", "latency", "overhead", "launch", "identical")


def heading(lab):
    report = lab.bench(None, "work", "--count", 1)
    driver = "-"
    with contextlib.suppress(FileNotFoundError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")[0]
    mps = "MPS" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "no MPS"
    now = datetime.datetime.now(datetime.UTC)
    return (
        f"{report['device']}, {report['sms']} SMs, driver {driver}, {mps}, {os.cpu_count()} cores, "
        f"Linux {platform.release()}, {now:%Y-%m-%d %H:%M} UTC"
    )


class Table:
    """The rows so far, written to table.txt and stderr as they come."""

    def __init__(self, path, title):
        self.path, self.lines = path, []
        self.add(title)

    def add(self, line):
        self.lines.append(line)
        print(line, file=sys.stderr)
        self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def run_step(lab, name, table):
    """Runs a step. Returns False if it failed; its rows so far stay."""
    step, limit_s = STEPS[name]
    began = time.monotonic()
    lab.enter(name)
    table.add(f"-- {name}: {step.__doc__.strip()}")

    try:
        with time_limit(limit_s, "the step"):
            for figure, target, measured in step(lab):
                lab.record(row=[figure, target, measured])
                table.add(f"{figure:<86} {target:<13} {measured}")
        return True
    except (OutOfTime, RuntimeError, OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        lab.record(failed=str(error))
        table.add(f"{name}: FAILED: {error}")
        return False
    finally:
        lab.leave()
        print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "out", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--steps", default=",".join(STANDARD))
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    names = options.steps.split(",")
    if unknown := [name for name in names if name not in STEPS]:
        sys.exit(f"measure.sh: no step {', '.join(unknown)}; there are {' '.join(STEPS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lab = Lab(options)
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
