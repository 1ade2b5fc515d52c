"""SiM's Figure 3 and Table 3: how busy its kernels keep the issue slots of the SMs, and how long they take.

Nsight Compute counts. The kernels run in their original form, without gpuctl, one launch at a time. Issue slot
utilization is the part of the cycles in which a scheduler issues an instruction; of a benchmark of several kernels it
is the mean by time. The profiler needs the right to read the GPU's counters, which root has.
"""

import collections
import csv

from ..lab.lab import toolkit_program
from .sim_pairs import KERNELS, LOW

PAPER = {  # Table 3: ms, ISU in percent
    "binomialOptions": (5.476, 73.6),
    "FDTD3d": (8.821, 27.5),
    "lavaMD": (8.958, 87.3),
    "md5Hash": (71.475, 97.4),
    "nbody": (39.155, 89.1),
    "particleFilter": (43.105, 48.6),
    "tpacf": (11.23, 34.8),
}
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"
TIME = "gpu__time_duration.sum"  # ns, in base units
LAUNCHES = 3
RUN_LIMIT_S = 60
LOW_BELOW = 50


def profiled(text):
    """[(ns, percent of issue slots)] of each launch in what Nsight Compute printed as CSV, between other lines."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches = collections.defaultdict(dict)
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        launches[row["ID"]][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [(one[TIME], one[ISSUED]) for one in launches.values() if TIME in one and ISSUED in one]


def mean_by_time(launches):
    return sum(ns * percent for ns, percent in launches) / sum(ns for ns, _ in launches)


def rows(found, rounds):
    """`found`: by benchmark, the launches of so many rounds."""
    busy = {kernel: mean_by_time(launches) for kernel, launches in found.items()}
    for kernel, launches in found.items():
        paper_ms, paper_busy = PAPER[kernel]
        ms = sum(ns for ns, _ in launches) / rounds / 1e6
        yield (
            f"Figure 3, Table 3, {kernel}: issue slots in use; time of a launch",
            f"{paper_busy} %; {paper_ms} ms",
            f"{busy[kernel]:.1f} %; {ms:.3f} ms",
        )
    low = sorted(kernel for kernel, percent in busy.items() if percent < LOW_BELOW)
    yield (
        f"Figure 3: kernels below {LOW_BELOW} % of the issue slots",
        ", ".join(sorted(LOW)),
        ", ".join(low) or "none",
    )


def profile(lab, profiler, kernel):
    """The launches of a benchmark. RuntimeError: the profiler fails, or says none."""
    options = ("--csv", "--print-units", "base", "--clock-control", "none", "--metrics", f"{ISSUED},{TIME}")
    run = ("run", kernel, "--size", "large", "--count", LAUNCHES, "--warmup", 0, "--check", "none", "--no-gpu-time")
    program = lab.start(None, profiler, *options, lab.bench_path, *run, limit_s=RUN_LIMIT_S)
    launches = profiled(program.finish())
    if not launches:
        raise program.failure("the profiler printed no launches")
    return launches


def step_slots(lab):
    """SiM's Figure 3 and Table 3: issue slots in use, and durations, by Nsight Compute."""
    profiler = toolkit_program("ncu")
    if lab.options.rehearse or not profiler:
        yield ("issue slots: NOT MEASURED", "", "no GPU" if profiler else "no ncu here")
        return
    found = {}
    for kernel in KERNELS:
        try:
            launches = profile(lab, profiler, kernel)
        except RuntimeError as error:  # of one kernel, which should not hide the others
            yield (f"{kernel}: NOT MEASURED", "", str(error)[-120:])  # the profiler's last words
            continue
        lab.record(kernel=kernel, launches=launches)
        found[kernel] = launches
    if found:
        yield from rows(found, LAUNCHES)
