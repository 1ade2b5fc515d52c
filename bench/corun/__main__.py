"""Runs the co-run matrix; bench/corun.sh starts this. docs/corun.md says what it measures."""

import argparse
import contextlib
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ..lab.modes import gpus
from . import plot, table
from .configurations import CONFIGURATIONS, OURS, TIME_SLICED, with_changes
from .results import Results
from .rounds import Rounds
from .stage import ROOT, Stage
from .workloads import BATCH, LS

ORDER = {
    False: "by turns: for each LS x batch, for each round, for each configuration, programs started anew",
    True: "quick: for each LS x batch, for each configuration, all rounds in one start of the programs",
}
LIVE = "; configurations of gpuctl that `gpuctl set` leads from one to the other by turns in one start"
SOFTWARE_SMS = "8"


def check_known(names, known, what):
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"corun: no such {what}: {', '.join(unknown)}; there are {', '.join(known)}")


def chosen(text, known, what):
    """The entries of a table that a list of names selects; without a list those of the matrix."""
    if text is None:
        return [entry for entry in known.values() if not entry.if_named]
    names = text.split(",")
    check_known(names, known, what)
    return [known[name] for name in known if name in names]


def chosen_configurations(text):
    """All, or those of a list of names, some with changes, in the order of the table."""
    if text is None:
        return list(CONFIGURATIONS.values())
    names = [(name.split(":")[0], name) for name in text.split(",")]
    check_known([plain for plain, _ in names], CONFIGURATIONS, "configuration")
    try:
        return [with_changes(name) for known in CONFIGURATIONS for plain, name in names if plain == known]
    except ValueError as error:
        raise SystemExit(f"corun: {error}") from None


def parse():
    parser = argparse.ArgumentParser(
        prog="corun.sh", description="LS x batch x configuration: LS latency against batch throughput."
    )
    parser.add_argument("--build-dir", default="build", help="a build directory of gpuctl")
    parser.add_argument(
        "--out",
        help="directory for corun.json, corun.txt, corun.svg and gpuctld.log (default: corun in the build directory)",
    )
    parser.add_argument("--json", help="file for the results (default: corun.json there)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of a round, that count")
    parser.add_argument("--settle", type=float, default=0.5, help="seconds of a round before those, that do not")
    parser.add_argument("--only-ls", metavar="NAME,...")
    parser.add_argument("--only-batch", metavar="NAME,...")
    parser.add_argument(
        "--configurations",
        metavar="NAME[:KEY=VALUE],...",
        help="KEY: of [daemon] or [lab] in gpuctl.toml, or reserve, a part of the SMs",
    )
    parser.add_argument("--limit-s", type=float, default=3600, help="begin nothing that would not be over by then")
    parser.add_argument(
        "--quick", action="store_true", help="all rounds of a configuration in one start of its programs"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="one start for all configurations of gpuctl that `gpuctl set` leads from one to the other, by turns",
    )
    parser.add_argument(
        "--software", action="store_true", help="the synthetic programs on the software GPU: figures mean nothing"
    )
    parser.add_argument("--list", action="store_true", help="print the names and what they are")
    return parser.parse_args()


def print_names():
    for title, known in (("LS", LS), ("batch", BATCH), ("configurations", CONFIGURATIONS)):
        print(title)
        for entry in known.values():
            print(f"  {entry.name:22}{entry.description}")


def first_line(*command):
    """Of what a command prints; ?: it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "?"


def counted(numbers):
    """Numbers of rounds, as people count."""
    return ", ".join(str(number + 1) for number in numbers)


def machine(software):
    gpu = "software GPU" if software else gpus()[2][0].partition(", ")[2]
    now = datetime.datetime.now(datetime.UTC)
    return {
        "gpu": gpu,
        "cores": os.cpu_count(),
        "when": f"{now:%Y-%m-%d %H:%M} UTC",
        "commit": os.environ.get("CORUN_COMMIT") or first_line("git", "rev-parse", "--short", "HEAD"),
    }


def head(options, configurations):
    workloads = {}
    for workload in (*LS.values(), *BATCH.values()):
        workloads.setdefault(workload.name, {})[workload.role] = workload.description
    return {
        "version": 1,
        "machine": machine(options.software),
        "order": ORDER[options.quick] + (LIVE if options.live else ""),
        "software": options.software,
        "options": {
            "rounds": options.rounds,
            "seconds": options.seconds,
            "settle": options.settle,
            "quick": options.quick,
            "live": options.live,
        },
        "configurations": {
            configuration.name: {
                "description": configuration.description,
                "kind": configuration.kind,
                "mode": configuration.mode,
            }
            for configuration in configurations
        },
        "workloads": workloads,
    }


def calibrated(stage, workloads, results):
    """Blocks and iterations of the synthetic programs, measured alone on the GPU before all runs."""
    stage.enter_mode(TIME_SLICED)
    sizes, known = {}, {}
    for workload in workloads:
        if workload.sizes and not stage.software:
            if workload.sizes not in known:
                known[workload.sizes] = stage.calibrate(workload.sizes)
            sizes[workload.name] = known[workload.sizes]
    results.data["sizes"] = sizes
    return sizes


def close(stage, results, scratch, out):
    stage.close()
    results.save()
    with contextlib.suppress(OSError):
        shutil.copy(scratch / "gpuctld.log", out / "gpuctld.log")


def matrix(options, scratch, out):
    configurations = chosen_configurations(options.configurations)
    ls, batch = chosen(options.only_ls, LS, "LS"), chosen(options.only_batch, BATCH, "batch program")
    if options.software:
        ls, batch = ([workload for workload in of_role if workload.synthetic] for of_role in (ls, batch))
    results = Results(options.json or out / "corun.json", head(options, configurations))
    # Beside an isolated program nothing is compiled.
    options.primed_in = next(
        (one for one in configurations if one.kind == OURS and one.isolation_at_start("ls") != "isolated"), None
    )

    def say(of_ls, of_batch, configuration, numbers, seconds):
        pair = " x ".join(workload.name for workload in (of_ls, of_batch) if workload)
        print(
            f"corun: {pair}, {configuration.name}, round {counted(numbers)}: {seconds:.1f} s",
            file=sys.stderr,
        )

    began = time.monotonic()
    stage = Stage(options.build_dir, scratch, options.software)
    try:
        sizes = calibrated(stage, ls + [program for workload in batch for program in workload.programs()], results)
        options.limit_s -= time.monotonic() - began
        Rounds(stage, results, options, sizes, say).run([(one, other) for one in ls for other in batch], configurations)
    finally:
        close(stage, results, scratch, out)
    return results.data


def main():
    options = parse()
    if options.list:
        return print_names()
    if not options.software and gpus() is None:
        raise SystemExit("corun: no GPU here (nvidia-smi); --software takes the software GPU")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.software:
        os.environ.setdefault("SOFTGPU_SMS", SOFTWARE_SMS)
    out = pathlib.Path(options.out or pathlib.Path(options.build_dir) / "corun")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="corun.") as scratch:
        data = matrix(options, pathlib.Path(scratch), out)
    text = "\n".join(table.lines(data))
    (out / "corun.txt").write_text(text + "\n", encoding="utf-8")
    if data["cells"]:
        (out / "corun.svg").write_text("\n".join(plot.svg(data)) + "\n", encoding="utf-8")
    print(text)
    return 1 if any(not missing["refused"] for missing in data["missing"]) else 0


if __name__ == "__main__":
    sys.exit(main())
