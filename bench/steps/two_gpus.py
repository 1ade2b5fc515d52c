"""Amounts for one GPU of two, with one program on both; and what is refused because it cannot be kept. Needs two GPUs
and PyTorch, with gpuctld's own MPS, so measure.sh --no-mps.
"""

import os
import signal
import subprocess
import sys
import time

from .controller import ALLOCATIONS, MANAGED, PRODUCTS, clients_of, during, rate, said, slices

AMOUNTS = (  # a setting, what takes it back, and what is expected of the steps of each GPU
    ("max=0:25%,1:75%", "max=unlimited", "0.25, 0.75"),
    ("quota=1:40ms/100ms", "quota=none", "1; of the time 0.4"),
)
WINDOW_S, ALONE_S, PERIOD_US, TASK_US, KERNEL_US = 3, 8, 10_000, 50, 500


def step_devices(lab):
    """One program on two GPUs with amounts of their own, frozen and moved. Needs two GPUs and PyTorch."""
    if lab.options.rehearse:
        raise RuntimeError("no PyTorch on the software GPU")
    with lab.gpuctld(config=MANAGED):
        with slices(lab, {"s": ("isolation=shared",), "few": ("isolation=shared", "max=0:25%,1:25%")}):
            yield from on_both(lab)
        with slices(lab, {"s": ("memory-max=0:1G",)}):
            for gpu, expected in enumerate(("out of memory", "status 0")):
                with lab.environment(CUDA_VISIBLE_DEVICES=str(gpu)):
                    status = lab.start("s", sys.executable, ALLOCATIONS, 64, 32).process.wait()
                counted = said(lab.call("GetSlice", path="s")["slice"])
                yield f"32 allocations of 64 MiB on GPU {gpu}, memory-max=0:1G", expected, f"status {status}; {counted}"


def on_both(lab):
    paths = [lab.scratch / f"steps-{lab.started}-{gpu}" for gpu in (0, 1)]
    program = lab.start("s", sys.executable, PRODUCTS, 60, *paths)
    program.wait_ready()
    time.sleep(2)
    if program.err().count("ready") < len(paths):
        raise RuntimeError("it does not compute on both GPUs yet")
    free, windows = during(lab, WINDOW_S), []
    for setting, back, expected in AMOUNTS:
        lab.gpuctl("set", "s", setting)
        windows.append((setting, expected, during(lab, WINDOW_S)))
        lab.gpuctl("set", "s", back)
        time.sleep(1)
    [client] = clients_of(lab, "s")
    at = {}
    for verb, arguments in (("freeze", ("s",)), ("thaw", ("s",)), ("move", (client["pid"], "few"))):
        at[verb] = time.monotonic_ns()
        lab.gpuctl(verb, *arguments)
        time.sleep(1)
    windows.append(("moved to a slice of max=0:25%,1:25%", "0.25, 0.25", during(lab, WINDOW_S)))
    os.kill(client["pid"], signal.SIGTERM)
    program.finish()
    done = [[int(line) for line in path.read_text(encoding="utf-8").split()] for path in paths]
    for what, expected, window in windows:
        parts = ", ".join(f"{rate(steps, window) / rate(steps, free):.3f}" for steps in done)
        yield f"one program on both GPUs, {what}: steps of those without", expected, parts
    for number, steps in enumerate(done):
        yield f"GPU {number}: from a command to its effect", "", effects(steps, free, at)


def effects(steps, free, at):
    """freeze: the last step before thaw. thaw: the next step. move: the end of the first step that is slow."""
    between = [end for end in steps if at["freeze"] < end < at["thaw"]]
    after = [end for end in steps if end > at["thaw"]]
    usual = 1e9 / rate(steps, free)
    slow = [end for begin, end in zip(after, after[1:]) if begin > at["move"] and end - begin > 2 * usual]
    found = {"freeze": between[-1:], "thaw": after[:1], "move": slow[:1]}
    return (
        ", ".join(
            f"{verb} {(end[0] - at[verb]) / 1e6:.1f} ms" if end else f"{verb}: none seen" for verb, end in found.items()
        )
        + f"; a step takes {usual / 1e6:.1f} ms"
    )


def step_admission(lab):
    """What is refused because it cannot be kept, after a program was seen alone."""
    task_us, kernel_us = lab.size((TASK_US, KERNEL_US), (10_000, 100_000))
    sized = lab.bench(None, "work", "--task-us", task_us, "--calibrate-us", kernel_us, "--count", 3, "--check", "none")
    blocks, iterations = sized["extent"][:2]
    period_us = PERIOD_US * lab.size(1, 20)
    seconds = lab.size(ALONE_S, 30)
    with lab.gpuctld(config=MANAGED), slices(lab, {"s": ("reserve=60%",)}):
        arrival = ("--arrival", "periodic", "--period-us", period_us, "--seconds", seconds + 4, "--check", "none")
        program = lab.start_bench("s", "work", "--blocks", blocks, "--iterations", iterations, *arrival)
        program.wait_launching()
        time.sleep(seconds)
        yield (
            f"work of {kernel_us} us each {period_us // 1000} ms alone: gpuctl advise s",
            "",
            answer(lab, "advise", "s"),
        )
        for part, expected in ((0.5, "refused"), (1.5, "done")):
            setting = f"latency={part * kernel_us:.0f}us"
            yield f"gpuctl set s {setting}", expected, answer(lab, "set", "s", setting)
        yield "gpuctl create-slice t --reserve 50%", "refused", answer(lab, "create-slice", "t", "--reserve", "50%")
        asked = ("advise", "--reserve", "50%", "--latency", "5ms")
        yield f"gpuctl {' '.join(asked)}", "no", answer(lab, *asked)
        program.finish()


def answer(lab, *words):
    run = subprocess.run([lab.gpuctl_path, *words], env=lab.env, capture_output=True, text=True, timeout=30)
    said_last = " / ".join((run.stdout + run.stderr).strip().splitlines())
    return f"status {run.returncode}{': ' + said_last if said_last else ''}"
