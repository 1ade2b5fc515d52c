"""Without MPS, where programs take turns on the GPU: the latency of a program with priority, while another program runs
whose kernels have no PTX.
"""

import importlib.util
import sys
import time

from .latency import periodic_ls, reserve_of, sized_ls
from .opaque import MATMUL, finished

SECONDS = 3
LEAD_S = 3  # the batch program computes so much longer than the other one is measured


def step_timeslice(lab):
    """LS of 8 blocks beside cuBLAS, without MPS: alone, plain, and in slices that decide the time slices. Needs
    PyTorch, a GPU and measure.sh --no-mps."""
    if lab.options.rehearse or importlib.util.find_spec("torch") is None:
        raise RuntimeError("no PyTorch, or no GPU")
    with lab.gpuctld():
        modes = {device["mode"] for device in lab.connection.call("GetStatus")["devices"]}
        if modes != {"time-sliced"}:
            raise RuntimeError(
                f"the mode is {', '.join(sorted(modes))}: this needs measure.sh --no-mps, and no MPS of others"
            )
        ls = periodic_ls(lab, sized_ls(lab, reserve_of(lab.sms())), SECONDS)
        # No reserve: it would keep SMs from the batch program that no other program could use in its turns.
        lab.gpuctl("create-slice", "ls", "--priority", 10)
        lab.gpuctl("create-slice", "batch")
        alone = lab.bench(None, *ls)
        yield "LS alone", "", latency(alone)
        batch_alone = finished(lab.start(None, sys.executable, MATMUL, SECONDS))
        yield "cuBLAS alone", "", f"{batch_alone['per_s']:.1f} matmul/s"
        p99, rate = {}, {}
        for name, ls_slice, batch_slice in (("plain", None, None), ("in slices", "ls", "batch")):
            batch = lab.start(batch_slice, sys.executable, MATMUL, SECONDS + LEAD_S)
            batch.wait_ready()
            program = lab.start_bench(ls_slice, *ls)
            said = said_of(lab) if batch_slice else ""
            report, result = program.report(), finished(batch)
            lab.record(timeslice=name, batch=result, said=said)
            p99[name], rate[name] = report["latency_us"]["p99"], result["per_s"]
            yield (
                f"LS beside cuBLAS, {name}",
                "",
                f"{latency(report)}; batch {rate[name]:.1f} matmul/s; "
                f"{report['mismatches'] + result['mismatches']} wrong{said}",
            )
    yield "LS p99 in slices / plain", "<= 0.2", f"{p99['in slices'] / p99['plain']:.3f}"
    yield "LS p99 in slices / alone", "", f"{p99['in slices'] / alone['latency_us']['p99']:.2f}"
    yield "cuBLAS in a slice / plain, both beside LS", ">= 0.95", f"{rate['in slices'] / rate['plain']:.3f}"


def latency(report):
    return f"p50 {report['latency_us']['p50']:.0f}, p99 {report['latency_us']['p99']:.0f} us"


def said_of(lab):
    """What the daemon reports of the batch program's turns while both run."""
    lab.wait_for(lambda: lab.usage("ls"), "LS to attach")
    time.sleep(LEAD_S / 10)
    usage = lab.usage("batch") or {}
    slices = f"{usage.get('time_slice')}: {usage.get('time_slice_us')} us"
    return f"; time slice {slices} on {usage.get('channel_groups')} channel groups"
