"""What a slice is set to, beside what its programs get: quotas, weights, freezing, memory, and what is counted. With
gpuctld's own MPS, so with measure.sh --no-mps.

Two kinds of programs: `work` can be rewritten; cuBLAS products have no PTX. On the software GPU both are `work`.
"""

import json
import os
import pathlib
import signal
import statistics
import sys
import time

PRODUCTS = pathlib.Path(__file__).parent / "products.py"
ALLOCATIONS = pathlib.Path(__file__).parent / "allocations.py"
MANAGED = 'daemon.mps = "manage"\n'
QUOTA, QUOTA_PART = "40ms/100ms", 0.4
SETTLE_S = 0.5
QUOTA_S, WEIGHTS_S, ALONE_S, STARTS_S, FROZEN_S = 5, 10, 3, 15, 1
LONG_KERNEL_US = 500_000
LONG_GAP = 5  # times the median


def step_quotas(lab):
    """A quota of 40ms/100ms: what programs do with it, in parts of what they do without. Needs measure.sh --no-mps."""
    with lab.gpuctld(config=MANAGED):
        for kind in kinds(lab):
            for isolation in ("shared", "isolated"):
                with slices(lab, {"s": (f"isolation={isolation}",)}):
                    steady = Steady(lab, kind, "s", 2 * QUOTA_S + STARTS_S)
                    free = during(lab, QUOTA_S)
                    lab.gpuctl("set", "s", f"quota={QUOTA}")
                    bound = during(lab, QUOTA_S)
                    [client] = clients_of(lab, "s")
                    done = steady.end()
                    part = rate(done, bound) / rate(done, free)
                    busy = busy_part(done, bound) / busy_part(done, free)
                    mode = client["usage"][0]["mode"]
                    parts = f"{part:.3f} of the steps, {busy:.3f} of the time"
                    yield f"{kind}, {isolation}, quota {QUOTA} ({mode})", f"{QUOTA_PART}", parts


def step_weights(lab):
    """Weights of programs side by side and by turns: their steps, in parts of what each does alone."""
    seconds = lab.size(WEIGHTS_S, 4)
    sets = [(weights, (kind,) * len(weights)) for weights in ((2, 1), (3, 2, 1)) for kind in kinds(lab)]
    with lab.gpuctld(config=MANAGED):
        alone = {}
        for kind in kinds(lab):
            with slices(lab, {"s": ()}):
                steady = Steady(lab, kind, "s", ALONE_S + 2)
                alone[kind] = steady.end_after(during(lab, ALONE_S))
        for isolation in ("shared", "isolated"):
            for weights, of in sets + [((2, 1), kinds(lab)[-2:])] * (len(kinds(lab)) > 1):
                paths = {
                    f"w{number}": (f"isolation={isolation}", f"weight={100 * weight}")
                    for number, weight in enumerate(weights)
                }
                with slices(lab, paths):
                    steadies = [Steady(lab, kind, path, seconds + STARTS_S) for kind, path in zip(of, paths)]
                    window = during(lab, seconds)
                    granted = " ".join(str(lab.usage(path)["granted"]) for path in paths)
                    parts = [steady.end_after(window) / alone[kind] for kind, steady in zip(of, steadies)]
                yield (
                    f"{' '.join(of)}, {isolation}, weights {':'.join(map(str, weights))}",
                    " : ".join(f"{weight / weights[-1]:.2f}" for weight in weights),
                    f"{' : '.join(f'{part / parts[-1]:.3f}' for part in parts)} (of alone "
                    f"{' '.join(f'{part:.3f}' for part in parts)}, together {sum(parts):.3f}; granted {granted})",
                )


def step_freeze(lab):
    """From `gpuctl freeze` to the last step of a program, from `thaw` to the next one, and from `move` to fewer SMs."""
    with lab.gpuctld(config=MANAGED):
        for kind in kinds(lab):
            for isolation in ("shared", "isolated"):
                with slices(lab, {"s": (f"isolation={isolation}",)}):
                    steady = Steady(lab, kind, "s", 12)
                    commands = []
                    for _ in range(lab.size(4, 2)):
                        for verb in ("freeze", "thaw"):
                            time.sleep(FROZEN_S / 2)
                            commands.append((verb, time.monotonic_ns()))
                            lab.gpuctl(verb, "s")
                    time.sleep(FROZEN_S / 2)
                    done = steady.end()
                off, on = [], []
                for number, (verb, at) in enumerate(commands):
                    following = commands[number + 1][1] if number + 1 < len(commands) else done[-1] + 1
                    there = [one for one in done if at < one < following]
                    if verb == "freeze":
                        off.append((there[-1] - at) / 1e6 if there else 0)
                    elif there:
                        on.append((there[0] - at) / 1e6)
                yield f"{kind}, {isolation}: freeze, to its last step", "", of_times(off)
                yield f"{kind}, {isolation}: thaw, to its next step", "", of_times(on)
        yield from leaving(lab)


def leaving(lab):
    """In the middle of a kernel of half a second: from a command to no more SMs than are left to the program."""
    task_us, kernel_us = lab.size((50, LONG_KERNEL_US), (10_000, 2 * LONG_KERNEL_US))
    sized = lab.bench(None, "work", "--task-us", task_us, "--calibrate-us", kernel_us, "--count", 1, "--check", "last")
    blocks, iterations = sized["extent"][:2]
    few = max(lab.sms() // 16, 1)
    # The program has company below another slice: alone its kernels keep their form.
    with slices(lab, {"s": ("weight=100",), "few": (f"max={few}",), "beside": ("weight=1",)}):
        beside = Steady(lab, "work", "beside", 30)
        program = lab.start_bench(
            "s", "work", "--blocks", blocks, "--iterations", iterations, "--seconds", 20, "--check", "none"
        )
        program.wait_launching()
        [client] = clients_of(lab, "s")
        time.sleep(1)

        def takes(verb, *arguments, path="s", most=0):
            began = time.monotonic_ns()
            lab.gpuctl(verb, *arguments)
            lab.wait_for(lambda: (lab.usage(path) or {"holding": most})["holding"] <= most, f"{verb} to be in force")
            return (time.monotonic_ns() - began) / 1e6

        times = []
        for _ in range(lab.size(5, 2)):
            times.append(takes("freeze", "s"))
            lab.gpuctl("thaw", "s")
            time.sleep(0.7)
        yield "work, in the middle of a kernel of 500 ms: freeze, to no SMs", "", of_times(times)
        moved = takes("move", client["pid"], "few", path="few", most=few)
        yield f"work, likewise: move to a slice of at most {few} SMs", "", f"{moved:.1f} ms"
        os.kill(client["pid"], signal.SIGTERM)
        beside.end()


def step_memory(lab):
    """memory_high and memory_max of a slice, and another one beside it. Needs PyTorch and a GPU."""
    if lab.options.rehearse:
        raise RuntimeError("no PyTorch on the software GPU")
    mib, count = 64, 32
    with lab.gpuctld(config=MANAGED):
        settings = {"high": ("memory-high=1G",), "max": ("memory-max=1G",), "beside": ()}
        with slices(lab, settings):
            for path in ("beside", "high"):
                took = json.loads(lab.start(path, sys.executable, ALLOCATIONS, mib, count).finish())
                lab.record(memory=path, took=took)
                below, above = took[:8], took[1024 // mib :]
                counted = lab.call("GetSlice", path=path)["slice"]
                yield (
                    f"{count} allocations of {mib} MiB, {' '.join(settings[path]) or 'no limit'}",
                    "",
                    f"first 8 median {statistics.median(below):.0f} us; above 1 GiB median "
                    f"{statistics.median(above):.0f}, longest {max(above):.0f}; {said(counted)}",
                )
            refused = lab.start("max", sys.executable, ALLOCATIONS, mib, count)
            status = refused.process.wait()
            last = refused.err().splitlines()[-1] if refused.err() else ""
            counted = lab.call("GetSlice", path="max")["slice"]
            yield f"likewise, {settings['max'][0]}", "out of memory", f"status {status}: {last[:60]}; {said(counted)}"


def step_accounts(lab):
    """What is counted of a program that keeps the GPU busy, in parts of the time of its steps."""
    with lab.gpuctld(config=MANAGED):
        for kind in kinds(lab):
            with slices(lab, {f"of-{kind}": ()}):
                steady = Steady(lab, kind, f"of-{kind}", lab.size(8, 3))
                steady.program.finish()
                done = steady.read()
                seconds = (done[-1] - done[0]) / 1e9 * lab.sms()
                counted = sum(entry["sm_seconds"] for entry in lab.call("GetUsage", slice=f"of-{kind}")["entries"])
                yield f"{kind}: SM-seconds counted / there were", "0.98 to 1.02", f"{counted / seconds:.3f}"


def said(one):
    return f"waits {one.get('memory_waits')}, refusals {one.get('memory_refusals')}"


def of_times(times):
    if not times:
        return "-"
    return f"median {statistics.median(times):.1f} ms, {min(times):.1f} to {max(times):.1f} ({len(times)})"


def kinds(lab):
    return ("work",) if lab.options.rehearse else ("work", "cuBLAS")


def during(lab, seconds):
    """Waits until what was set is in force, then so long. Returns when that began and ended, in ns."""
    time.sleep(SETTLE_S)
    began = time.monotonic_ns()
    time.sleep(seconds)
    return began, time.monotonic_ns()


def rate(done, window):
    """Steps a second in that time."""
    began, ended = window
    return sum(began <= at < ended for at in done) / (ended - began) * 1e9


def busy_part(done, window):
    """The part of that time that is no long gap between two steps. A GPU that rests may have a faster clock then, and
    does more steps in the same time."""
    began, ended = window
    ends = [at for at in done if began <= at < ended]
    gaps = [later - earlier for earlier, later in zip(ends, ends[1:])]
    return sum(gap for gap in gaps if gap < LONG_GAP * statistics.median(gaps)) / (ended - began)


def clients_of(lab, path):
    return lab.call("GetSlice", path=path)["clients"]


class slices:
    """Slices with these settings, that are gone afterwards."""

    def __init__(self, lab, settings):
        self.lab, self.settings = lab, settings

    def __enter__(self):
        for path, settings in self.settings.items():
            self.lab.gpuctl("create-slice", path)
            if settings:
                self.lab.gpuctl("set", path, *settings)

    def __exit__(self, *_):
        for path in self.settings:
            self.lab.wait_for(lambda path=path: not clients_of(self.lab, path), f"{path} to be left")
            self.lab.gpuctl("delete-slice", path)


class Steady:
    """A program that computes all the time, step by step, for some seconds or until end()."""

    def __init__(self, lab, kind, path, seconds):
        self.lab, self.kind, self.slice_path = lab, kind, path
        self.path = lab.scratch / f"steps-{lab.started}"
        if kind == "cuBLAS":
            self.program = lab.start(path, sys.executable, PRODUCTS, seconds, self.path)
        else:
            task_us, kernel_us = lab.size((50, 2_000), (10_000, 100_000))
            sized = lab.bench(
                None, "work", "--task-us", task_us, "--calibrate-us", kernel_us, "--count", 5, "--check", "last"
            )
            blocks, iterations = sized["extent"][:2]
            issue = ("--depth", 2, "--check", "none", "--seconds", seconds, "--samples", self.path, "--start-on-input")
            self.program = lab.start_bench(path, "work", "--blocks", blocks, "--iterations", iterations, *issue)
        self.program.wait_ready()
        if kind != "cuBLAS":
            self.program.begin(time.monotonic_ns())

    def end(self):
        """When its steps were done, in ns. Its process alone gets the signal: a second one would end it at once."""
        for client in clients_of(self.lab, self.slice_path):
            os.kill(client["pid"], signal.SIGTERM)
        self.program.finish()
        return self.read()

    def read(self):
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [int(line) if self.kind == "cuBLAS" else int(line.split()[3]) for line in lines if line[0].isdigit()]

    def end_after(self, window):
        """Ends it. Returns its steps a second in that time."""
        return rate(self.end(), window)
