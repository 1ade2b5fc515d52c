#!/usr/bin/env python3
"""The measurements behind docs/measurements.md; started by measure.sh, which also says what the options mean.

A step is a function that returns rows of the table: figure, target, measured. Sides that are compared alternate within
one run, and the medians of the pairs count. Everything a program prints is kept in raw.jsonl.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

STARTUP_S = 60
KERNELS = ("vectorAdd", "matrixMul", "reduction", "histogram", "work")
PROGRAMS = {"vector_add": 400, "matrix_mul": 20, "reduction": 4000}  # static runtime; scale for about 100 us and more


class Lab:
    """The binaries, the GPU, one gpuctld at a time, and the record of what was run."""

    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build)
        self.bench_path = str(self.build / "kernels/gpuslice-bench")
        self.gpuctl_path = str(self.build / "src/gpuctl/gpuctl")
        self.raw = open(pathlib.Path(options.out) / "raw.jsonl", "w", buffering=1, encoding="utf-8")
        self.env = dict(os.environ, GPUCTL_SOCKET=f"{options.scratch}/measure.sock")
        if options.rehearse:
            self.env["LD_LIBRARY_PATH"] = str(self.build / "src/softgpu")
            self.env["SOFTGPU_TABLE"] = f"{options.scratch}/softgpu"
            self.env.setdefault("SOFTGPU_WARP_INSTRUCTION_NS", "10000")
        self.daemon = None
        self.step = ""

    def size(self, real, rehearsal):
        return rehearsal if self.options.rehearse else real

    def record(self, **entry):
        self.raw.write(json.dumps({"step": self.step, **entry}) + "\n")

    def command(self, slice_path, program, *arguments):
        prefix = [self.gpuctl_path, "run", "--slice", slice_path, "--"] if slice_path else []
        return [*prefix, str(program), *map(str, arguments)]

    def start(self, slice_path, program, *arguments):
        return subprocess.Popen(self.command(slice_path, program, *arguments), env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process, slice_path, arguments, seconds=120):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise RuntimeError(f"{arguments}: still running after {seconds} s; {out}{err}") from None
        if process.returncode not in (0, 3):
            raise RuntimeError(f"{arguments}: exit status {process.returncode}: {err.strip()}{out}")
        report = json.loads(out)
        self.record(slice=slice_path, arguments=[str(a) for a in arguments], report=report)
        return report

    def bench(self, slice_path, *arguments):
        """gpuslice-bench run ARGUMENTS to its end, in a slice or plain (None)."""
        return self.finish(self.start_bench(slice_path, *arguments), slice_path, arguments)

    def start_bench(self, slice_path, *arguments):
        return self.start(slice_path, self.bench_path, "run", *arguments, "--json")

    def together(self, seconds, *runs):
        """Several (slice, arguments) over the same span of time; their reports."""
        start = time.monotonic_ns() + 3_000_000_000
        timing = ("--seconds", seconds, "--start-at", start)
        processes = [self.start_bench(slice_path, *arguments, *timing) for slice_path, arguments in runs]
        return [self.finish(process, *run) for process, run in zip(processes, runs)]

    @contextlib.contextmanager
    def gpuctld(self, *options, config=""):
        path = pathlib.Path(self.options.scratch) / "measure.toml"
        path.write_text(config)
        shutil.rmtree(f"{self.options.scratch}/measure.state", ignore_errors=True)
        command = [str(self.build / "src/gpuctld/gpuctld"), "--socket", self.env["GPUCTL_SOCKET"], "--config", str(path),
                   "--state", f"{self.options.scratch}/measure.state", *map(str, options)]
        if self.options.rehearse:
            command.append("--software-gpu")
        with open(pathlib.Path(self.options.out) / "gpuctld.log", "a", encoding="utf-8") as log:
            daemon = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + STARTUP_S
            while subprocess.run([self.gpuctl_path, "status"], env=self.env, capture_output=True).returncode != 0:
                if daemon.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("gpuctld does not start")
                time.sleep(0.05)
            yield
        finally:
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def gpuctl(self, *arguments):
        subprocess.run([self.gpuctl_path, *map(str, arguments)], env=self.env, check=True, stdout=subprocess.DEVNULL)

    def call(self, method, **parameters):
        """One Varlink call, without the cost of a process."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(self.env["GPUCTL_SOCKET"])
            connection.sendall(json.dumps({"method": f"io.gpuctl.{method}", "parameters": parameters}).encode() + b"\0")
            data = b""
            while not data.endswith(b"\0"):
                piece = connection.recv(65536)
                if not piece:
                    raise RuntimeError(f"{method}: the daemon closed the connection")
                data += piece
        reply = json.loads(data[:-1])
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply}")
        return reply["parameters"]

    def usage(self, slice_path):
        """Of the first client of a slice, on the first GPU; None while there is none."""
        clients = self.call("GetSlice", path=slice_path)["clients"]
        return clients[0]["usage"][0] if clients and clients[0]["usage"] else None

    def wait_for(self, condition, what, seconds=STARTUP_S):
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {seconds} s in vain: {what}")
            time.sleep(0.005)
        return value


def median_pair_ratio(pairs):
    return statistics.median(after / before for before, after in pairs)


def step_identical(lab):
    """Storm of evictions: results of the kernels and of static-runtime programs."""
    least = lab.size(1000, 20)
    storm_us = lab.size(100, 3000)
    rows = []
    with lab.gpuctld("--evict-storm", storm_us, config="[daemon]\nlatency_target_us = 1\n"):
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            size = lab.size("large", "trivial")
            original = lab.bench(None, kernel, "--size", size, "--count", 2)
            arguments = (kernel, "--size", size, "--count", 1_000_000, "--depth", 2)
            process = lab.start_bench("s", *arguments)
            evictions = wait_evictions(lab, process, least)
            process.send_signal(signal.SIGTERM)
            report = lab.finish(process, "s", arguments)
            same = report["output_hash"] == original["output_hash"]
            rows.append((f"{kernel}, results in {evictions} evictions", "all right",
                         f"{report['mismatches']} of {report['checked']} wrong, memory {'same' if same else 'DIFFERS'}"))
        if not lab.options.rehearse:
            rows += [static_program(lab, name, scale, least) for name, scale in PROGRAMS.items()]
    return rows


def static_program(lab, name, scale, least):
    process = lab.start("s", lab.build / f"tests/cuda/{name}_static", 1_000_000, scale)
    evictions = wait_evictions(lab, process, least)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    lab.record(program=name, evictions=evictions, out=out, err=err)
    line = re.search(r"(\d+) rounds, (\d+) wrong", out)
    if line is None:
        raise RuntimeError(f"{name}: {err}{out}")
    return (f"{name} (static runtime), results in {evictions} evictions", "all right",
            f"{line.group(2)} of {line.group(1)} wrong")


def wait_evictions(lab, process, least, seconds=90):
    """Evictions of the slice's client once there are so many; those there are when time is up."""
    deadline = time.monotonic() + seconds
    evictions = 0
    while evictions < least and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        evictions = max(evictions, (lab.usage("s") or {"evictions": 0})["evictions"])
    return evictions


def step_evict(lab):
    """From the daemon's decision to SMs free, for block-tasks of several lengths."""
    rows = []
    shrinks = lab.size(300, 10)
    for task_us in lab.size((10, 20, 50, 100), (5000,)):
        with lab.gpuctld():
            lab.gpuctl("create-slice", "s")
            size = lab.bench(None, "work", "--task-us", task_us, "--calibrate-us", lab.size(50_000, 500_000), "--count", 1)
            blocks, iterations, _ = size["extent"]
            arguments = ("work", "--blocks", blocks, "--iterations", iterations, "--count", 1_000_000, "--depth", 2,
                         "--check", "last", "--no-gpu-time")
            process = lab.start_bench("s", *arguments)
            lab.wait_for(lambda: (lab.usage("s") or {}).get("holding"), "the client to run")
            times = evict_times(lab, shrinks)
            process.send_signal(signal.SIGTERM)
            lab.finish(process, "s", arguments)
        lab.record(task_us=task_us, evict_us=times)
        times.sort()
        rows.append((f"evict, decision to SMs free, {task_us} us block-tasks (n={len(times)})",
                     f"p50 <= {20 + task_us} us",
                     f"p50 {times[len(times) // 2]:.1f}, p99 {times[len(times) * 99 // 100]:.1f} us"))
    return rows


def evict_times(lab, shrinks):
    sms = lab.call("GetStatus")["devices"][0]["sms"]
    times = []
    deadline = time.monotonic() + 60
    while len(times) < shrinks and time.monotonic() < deadline:
        before = lab.usage("s")["evictions"]
        lab.call("SetSlice", path="s", settings={"max": sms // 2})
        waited = time.monotonic() + 1
        while time.monotonic() < waited:
            usage = lab.usage("s")
            if usage["evictions"] > before and usage["holding"] <= sms // 2:
                times.append(usage["evict_us_last"])
                break
        lab.call("SetSlice", path="s", settings={"max_unlimited": True})
        time.sleep(0.01)
    return times


def step_latency(lab):
    """LS alone, beside batch unmanaged, beside batch in slices; batch alone. Three times round."""
    seconds = lab.size(6, 3)
    rounds = lab.size(3, 1)
    with lab.gpuctld():
        sms = lab.call("GetStatus")["devices"][0]["sms"]
        reserve = 8 if sms >= 64 else sms // 4
        unit = lab.size(50, 5000)
        ls_size = lab.bench(None, "work", "--blocks", 8 * reserve, "--calibrate-us", unit, "--count", 10)
        batch_size = lab.bench(None, "work", "--task-us", 2 * unit, "--calibrate-us", lab.size(10_000, 200_000),
                               "--count", 2)
        ls = ("work", "--blocks", ls_size["extent"][0], "--iterations", ls_size["extent"][1], "--arrival", "poisson",
              "--period-us", lab.size(2000, 50_000), "--priority", "high")
        batch = ("work", "--blocks", batch_size["extent"][0], "--iterations", batch_size["extent"][1], "--depth", 2,
                 "--priority", "low", "--check", lab.size("last", "all"))
        lab.gpuctl("create-slice", "ls", "--reserve", reserve)
        lab.gpuctl("create-slice", "batch")
        p50, p99, rate = ({"alone": [], "unmanaged": [], "managed": []} for _ in range(3))
        wrong = 0
        for _ in range(rounds):
            for name, runs in (("alone", [(None, ls)]), ("batch", [(None, batch)]),
                               ("unmanaged", [(None, ls), (None, batch)]), ("managed", [("ls", ls), ("batch", batch)])):
                reports = lab.together(seconds, *runs)
                wrong += sum(report["mismatches"] for report in reports)
                if name != "batch":
                    p50[name].append(reports[0]["latency_us"]["p50"])
                    p99[name].append(reports[0]["latency_us"]["p99"])
                if name != "alone":
                    rate["alone" if name == "batch" else name].append(reports[-1]["kernels_per_s"])
    p50, p99, rate = ({name: statistics.median(values) for name, values in table.items()} for table in (p50, p99, rate))
    share = (sms - reserve) / sms
    return [
        ("LS p50/p99 alone", "", f"{p50['alone']:.0f} / {p99['alone']:.0f} us"),
        ("LS p50/p99 beside batch, unmanaged", "", f"{p50['unmanaged']:.0f} / {p99['unmanaged']:.0f} us"),
        ("LS p50/p99 beside batch, in slices", "", f"{p50['managed']:.0f} / {p99['managed']:.0f} us"),
        ("LS p99 in slices / alone", "<= 1.1", f"{p99['managed'] / p99['alone']:.2f}"),
        ("batch in slices / its share of batch alone", ">= 0.90",
         f"{rate['managed'] / (rate['alone'] * share):.3f} ({rate['managed']:.1f} of {rate['alone'] * share:.1f} kernels/s)"),
        ("batch in slices / unmanaged", "", f"{rate['managed'] / rate['unmanaged']:.3f}"),
        ("wrong results", "0", str(wrong)),
    ]


def step_overhead(lab):
    """GPU time of kernels of 100 us and more, original against rewritten, alternating."""
    rows = []
    pairs_wanted = lab.size(7, 2)
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            arguments = (kernel, "--size", lab.size("large", "trivial"), "--count", lab.size(100, 5), "--check", "last")
            gpu, rate = [], []
            for _ in range(pairs_wanted):
                original, rewritten = lab.bench(None, *arguments), lab.bench("s", *arguments)
                gpu.append((original["gpu_us"]["p50"], rewritten["gpu_us"]["p50"]))
                queued = (*arguments, "--depth", 4, "--no-gpu-time")
                original, rewritten = lab.bench(None, *queued), lab.bench("s", *queued)
                rate.append((rewritten["kernels_per_s"], original["kernels_per_s"]))
            rows.append((f"{kernel}, {statistics.median(before for before, _ in gpu):.0f} us: rewritten / original",
                         "<= 1.02", f"{median_pair_ratio(gpu):.3f} one by one, {median_pair_ratio(rate):.3f} queued"))
    return rows


def step_launch(lab):
    """CPU time of the launch call: original form under gpuctl, and rewritten with a gate, against plain."""
    rows = []
    pairs_wanted = lab.size(9, 2)
    # One block that ends at once is below the latency target; 20 times that many iterations are above it.
    cases = (("in its original form", "<= 0.3 us", lab.size(("--blocks", 8, "--iterations", 20), None)),
             ("rewritten, with a gate", "<= 2.5 us", ("--blocks", 8, "--iterations", lab.size(5000, 20))))
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        for name, target, extent in cases:
            if extent is None:
                continue
            arguments = ("work", *extent, "--count", lab.size(3000, 20), "--warmup", lab.size(100, 2), "--check", "last",
                         "--no-gpu-time", "--depth", 8)
            pairs = [(lab.bench(None, *arguments)["launch_call_us"], lab.bench("s", *arguments)["launch_call_us"])
                     for _ in range(pairs_wanted)]
            extra = statistics.median(after - before for before, after in pairs)
            plain = statistics.median(before for before, _ in pairs)
            rows.append((f"launch call {name}, over plain ({plain:.2f} us)", target, f"+{extra:.2f} us"))
    return rows


STEPS = {"identical": step_identical, "evict": step_evict, "latency": step_latency, "overhead": step_overhead,
         "launch": step_launch}


def heading(lab):
    report = lab.bench(None, "work", "--count", 1)
    driver = "-"
    with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    mps = "MPS" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else "no MPS"
    now = datetime.datetime.now(datetime.timezone.utc)
    return (f"{report['device']}, {report['sms']} SMs, driver {driver}, {mps}, {os.cpu_count()} cores, "
            f"Linux {platform.release()}, {now:%Y-%m-%d %H:%M} UTC")


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "out", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    names = options.steps.split(",")
    if any(name not in STEPS for name in names):
        sys.exit("steps: " + ", ".join(f"{name} ({step.__doc__.strip()})" for name, step in STEPS.items()))
    lab = Lab(options)
    lines = [heading(lab)]
    failed = False
    for lab.step in names:
        began = time.monotonic()
        print(f"{lab.step}: {STEPS[lab.step].__doc__.strip()}", file=sys.stderr)
        try:
            rows = STEPS[lab.step](lab)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            rows = [(lab.step, "", f"FAILED: {error}")]
            failed = True
        lines += [f"{figure:<66} {target:<14} {measured}" for figure, target, measured in rows]
        print("\n".join(lines[-len(rows):] + [f"({time.monotonic() - began:.0f} s)"]), file=sys.stderr)
        (pathlib.Path(options.out) / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n" + "\n".join(lines))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
