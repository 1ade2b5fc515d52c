"""The latency of a client that fits its reserve, while a program runs whose kernels have no PTX (cuBLAS)."""

import importlib.util
import json
import pathlib
import sys

from .latency import periodic_ls, reserve_of, sized_ls

MATMUL = pathlib.Path(__file__).parent / "matmul.py"
SECONDS = 5


def step_opaque(lab):
    """LS that fits its reserve beside cuBLAS: alone, unmanaged and in slices. Needs PyTorch and a GPU."""
    if lab.options.rehearse or importlib.util.find_spec("torch") is None:
        raise RuntimeError("no PyTorch, or no GPU")
    with lab.gpuctld():
        sms = lab.sms()
        reserve = reserve_of(sms)
        ls = periodic_ls(lab, sized_ls(lab, reserve), SECONDS)
        lab.gpuctl("create-slice", "ls", "--reserve", reserve, "--reserve-mode", "strict")
        lab.gpuctl("create-slice", "batch")
        alone = lab.bench(None, *ls)
        batch_alone = finished(lab.start(None, sys.executable, MATMUL, SECONDS))
        found = {}
        for name, ls_slice, batch_slice in (("unmanaged", None, None), ("in slices", "ls", "batch")):
            batch = lab.start(batch_slice, sys.executable, MATMUL, SECONDS + 4)
            batch.wait_ready()
            report = lab.start_bench(ls_slice, *ls).report()
            result = finished(batch)
            found[name] = (report, result)
            lab.record(opaque=name, batch=result)
            yield (
                f"LS beside cuBLAS, {name}",
                "",
                f"p50 {report['latency_us']['p50']:.0f}, p99 {report['latency_us']['p99']:.0f} us; "
                f"batch {result['per_s']:.1f} matmul/s; {report['mismatches'] + result['mismatches']} wrong",
            )
    p99 = alone["latency_us"]["p99"]
    yield (
        "LS alone; cuBLAS alone",
        "",
        f"p50 {alone['latency_us']['p50']:.0f}, p99 {p99:.0f} us; {batch_alone['per_s']:.1f} matmul/s",
    )
    managed, managed_batch = found["in slices"]
    yield (
        "LS p99 in slices / unmanaged under MPS, stream priority high",
        "<= 1.2",
        f"{managed['latency_us']['p99'] / found['unmanaged'][0]['latency_us']['p99']:.3f}",
    )
    yield ("LS p99 in slices / alone", "", f"{managed['latency_us']['p99'] / p99:.2f}")
    yield (
        "cuBLAS in a slice / its share of alone",
        ">= 0.95",
        f"{managed_batch['per_s'] / batch_alone['per_s'] * sms / (sms - reserve):.3f}",
    )


def finished(program):
    return json.loads(program.finish())
