"""Memory of a frozen program on the host and back, NVIDIA's driver doing it; memory that is kept for a slice; energy.
Need PyTorch and a GPU, and no MPS: measure.sh --no-mps.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

from .controller import ALLOCATIONS, PRODUCTS, clients_of, of_times, said, slices

HOLDER = pathlib.Path(__file__).parent / "holder.py"
MANAGED = pathlib.Path(__file__).parent / "managed.py"
HELD_GIB = (1, 16)
ROUNDS = 3
PATIENCE_S = 60
LEFT_GIB = 8  # to a program that comes back: less than it had
POWER_S = 60  # gpuctld asks for the energy once a minute


def step_swap(lab):
    """`gpuctl freeze --swap` and `thaw` of a PyTorch program that computes."""
    with lab.gpuctld():
        for gib in HELD_GIB:
            with slices(lab, {"s": ()}):
                yield from there_and_back(lab, gib)
        with slices(lab, {"s": (), "other": ()}):
            yield from without_room(lab, HELD_GIB[-1])
        for how in ("SIGTERM", "SIGINT", "SIGKILL", "gpuctl kill"):
            with slices(lab, {"s": ()}):
                yield ended(lab, how)
        with slices(lab, {"s": ()}):
            yield ended_by_itself(lab)
        with slices(lab, {"s": ()}):
            yield with_a_managed_variable(lab)


def there_and_back(lab, gib):
    holder, path = start_holder(lab, "s", gib, 100)
    before = used_mib()
    away, back, left = [], [], []
    for _ in range(ROUNDS):
        away.append(swap_out(lab, holder))
        left.append(used_mib())
        steps, began = steps_of(path), time.monotonic_ns()
        lab.gpuctl("thaw", "s")
        back.append(until_next_step(lab, path, steps, began))
        time.sleep(0.3)
    yield f"{gib} GiB held: freeze --swap, until they are on the host", "", of_times(away)
    yield f"{gib} GiB held: thaw, to the next step", "", of_times(back)
    yield f"{gib} GiB held: used on the GPU", "", f"{before} MiB; swapped {max(left)}"
    yield f"{gib} GiB held: what was in them, after {ROUNDS} times", "right", end_holder(lab, holder)


def without_room(lab, gib):
    """Another program takes the memory meanwhile."""
    holder, path = start_holder(lab, "s", gib, 100)
    swap_out(lab, holder)
    free = (total_mib() - used_mib()) / 1024
    other, _ = start_holder(lab, "other", free - LEFT_GIB, 90)
    steps = steps_of(path)
    lab.gpuctl("thaw", "s")
    time.sleep(4)
    [client] = clients_of(lab, "s")
    more = steps_of(path) - steps
    yield f"thaw of {gib} GiB where {LEFT_GIB} are free", "waits", f"{more} steps; {client.get('swap_now')}"
    end_holder(lab, other)
    took = until_next_step(lab, path, steps, time.monotonic_ns())
    yield "likewise: from the other program's end to the next step", "", f"{took:.0f} ms"
    yield "likewise: what was in them", "right", end_holder(lab, holder)


def ended(lab, how):
    holder, _ = start_holder(lab, "s", HELD_GIB[0], 100)
    swap_out(lab, holder)
    [client] = clients_of(lab, "s")
    began = time.monotonic_ns()
    if how == "gpuctl kill":
        lab.gpuctl("kill", client["pid"])
    else:
        os.kill(client["pid"], getattr(signal, how))
        if how != "SIGKILL":  # its handler runs in Python, and its calls wait until the slice is thawed
            time.sleep(1)
            lab.gpuctl("thaw", "s")
    try:
        status = holder.process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"{how} while swapped", "it ends", f"not within {PATIENCE_S} s"
    took = (time.monotonic_ns() - began) / 1e6
    lab.gpuctl("thaw", "s")
    return (
        f"{how} while swapped",
        "it ends",
        f"status {status} after {took:.0f} ms; {holder.out().strip() or 'no word'}",
    )


def ended_by_itself(lab):
    """Python calls the driver before any exit handler runs, and that call waits for the thaw."""
    holder, _ = start_holder(lab, "s", HELD_GIB[0], 0)
    swap_out(lab, holder)
    began = time.monotonic_ns()
    holder.process.stdin.close()
    time.sleep(1)
    lab.gpuctl("thaw", "s")
    try:
        status = holder.process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "exit while swapped", "it ends", f"not within {PATIENCE_S} s"
    took = (time.monotonic_ns() - began) / 1e6
    return "exit while swapped", "it ends", f"status {status} after {took:.0f} ms; {holder.out().strip()}"


def with_a_managed_variable(lab):
    """The driver would give it up."""
    steps = lab.scratch / f"steps-{lab.started}"
    program = lab.start("s", sys.executable, MANAGED, 60, steps)
    program.wait_ready()
    lab.gpuctl("freeze", "s", "--swap")
    time.sleep(3)
    [client] = clients_of(lab, "s")
    before, began = steps_of(steps), time.monotonic_ns()
    lab.gpuctl("thaw", "s")
    took = until_next_step(lab, steps, before, began)
    said = f"{client.get('swap_now')}; a step {took:.0f} ms after thaw; {end_holder(lab, program)}"
    return "freeze --swap of a program with a __managed__ variable", "stays", said


def step_kept(lab):
    """memory_min of a slice beside a program that allocates."""
    with lab.gpuctld():
        kept = total_mib() - used_mib() - 2048
        with slices(lab, {"kept": (f"memory-min={kept}M",), "beside": ()}):
            refused = lab.start("beside", sys.executable, ALLOCATIONS, 64, 64)
            status = refused.process.wait()
            last = refused.err().splitlines()[-1] if refused.err() else ""
            counted = lab.call("GetSlice", path="kept")["slice"]
            yield (
                "64 allocations of 64 MiB beside all but 2 GiB that are kept",
                "out of memory",
                (f"status {status}: {last[:60]}; {said(counted)}"),
            )
            took = json.loads(lab.start("kept", sys.executable, ALLOCATIONS, 64, 64).finish())
            yield "likewise in the slice that they are kept for", "64", f"{len(took)}"


def step_energy(lab):
    """What is counted of a program's energy, beside what NVIDIA's tool says of the GPU meanwhile."""
    with lab.gpuctld():
        with slices(lab, {"s": ()}):
            steps = lab.scratch / f"steps-{lab.started}"
            program = lab.start("s", sys.executable, PRODUCTS, 2 * POWER_S, steps)
            program.wait_ready()
            began, watts = time.monotonic(), []
            while joules(lab) == 0 and time.monotonic() < began + POWER_S + 15:
                watts.append(float(nvidia_smi("power.draw")))
            counted, took = joules(lab), time.monotonic() - began
            for client in clients_of(lab, "s"):
                os.kill(client["pid"], signal.SIGTERM)
            program.finish()
            of_gpu = statistics.mean(watts) * took
            yield (
                f"cuBLAS alone for {took:.1f} s: joules counted / power.draw",
                "",
                (f"{counted:.0f} / {of_gpu:.0f} = {counted / of_gpu:.3f}"),
            )


def joules(lab):
    return lab.call("GetSlice", path="s")["slice"].get("energy_joules") or 0


def start_holder(lab, path, gib, seconds):
    steps = lab.scratch / f"steps-{lab.started}"
    holder = lab.start(path, sys.executable, HOLDER, gib, seconds, steps)
    holder.wait_ready()
    lab.wait_for(steps.exists, "its first step", PATIENCE_S)
    return holder, steps


def end_holder(lab, holder):
    for client in clients_of(lab, holder.slice_path):
        os.kill(client["pid"], signal.SIGTERM)
    return holder.finish().strip()


def steps_of(path):
    return path.read_text(encoding="utf-8").count("\n")


def until_next_step(lab, path, steps, began_ns):
    """In ms, since then."""
    lab.wait_for(lambda: steps_of(path) > steps, "a step", PATIENCE_S)
    return (time.monotonic_ns() - began_ns) / 1e6


def swap_out(lab, holder):
    """In ms. An error says why the memory stays."""
    began = time.monotonic_ns()
    lab.gpuctl("freeze", holder.slice_path, "--swap")
    said = []

    def is_away():
        if holder.process.poll() is not None:
            raise holder.failure(f"ended with {holder.process.returncode} as its memory left")
        [client] = clients_of(lab, holder.slice_path)
        said[:] = [client.get("swap_now")]
        return (client["usage"][0].get("swapped") or 0) > 0

    try:
        lab.wait_for(is_away, "the memory to be on the host", PATIENCE_S)
    except RuntimeError as error:
        raise RuntimeError(f"{error}: {said}") from error
    return (time.monotonic_ns() - began) / 1e6


def nvidia_smi(field):
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "-i", "0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def used_mib():
    return int(nvidia_smi("memory.used"))


def total_mib():
    return int(nvidia_smi("memory.total"))
