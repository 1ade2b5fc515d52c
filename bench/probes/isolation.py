"""Runs contexts.cc in several processes at once, inside and outside of MPS, and prints what was seen (isolation.sh)."""

import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import time

SCRATCH = pathlib.Path(sys.argv[1])
BUILD = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
PROBE = SCRATCH / "contexts"
NOWHERE = {"CUDA_MPS_PIPE_DIRECTORY": "/proc/isolated-by-gpuctl"}
SECONDS = 1.5
FAULTS = int(os.environ.get("FAULTS", "6"))  # of each kind; 100 take some minutes


def environment(extra):
    return {**os.environ, **extra}


def ask(*words, **extra):
    done = subprocess.run([PROBE, *map(str, words)], env=environment(extra), capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).strip().replace("\n", "; ")


@contextlib.contextmanager
def mps(name, **extra):
    """A control daemon with a pipe directory of its own."""
    pipes, logs = SCRATCH / name, SCRATCH / f"{name}.log"
    pipes.mkdir(), logs.mkdir()
    where = {"CUDA_MPS_PIPE_DIRECTORY": str(pipes), "CUDA_MPS_LOG_DIRECTORY": str(logs)}
    started = subprocess.run(
        ["nvidia-cuda-mps-control", "-d"],
        env=environment({**where, **extra}),
        capture_output=True,
        text=True,
        timeout=30,
    )
    if started.returncode != 0:
        print(f"MPS {name} does not start: {started.stdout}{started.stderr}".strip())
    try:
        yield where
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 2\n", env=environment(where), text=True, timeout=30)


class Watch:
    """A process with a kernel that says when it ran."""

    def __init__(self, where, blocks=1, threads=32, shared=0, seconds=SECONDS, linger=0, command=()):
        words = [*command, PROBE, "watch", seconds, blocks, threads, shared, linger]
        self.process = subprocess.Popen(
            list(map(str, words)),
            env=environment(where),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = self.process.stdout.readline().strip()

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()

    def runs(self):
        """[(first, last)] in ns; what it said instead, as text."""
        found = []
        for line in self.process.stdout:
            words = line.split()
            if line.strip() == "end":
                return found
            if len(words) != 2 or not all(word.isdigit() for word in words):
                return f"{self.said} {line.strip()}"
            found.append((int(words[0]), int(words[1])))
        return f"{self.said}: ended with {self.process.wait()}"

    def end(self):
        self.process.kill()
        self.process.wait()


def together(*watches):
    for watch in watches:
        watch.go()
    runs = [watch.runs() for watch in watches]
    for watch in watches:
        watch.end()
    return runs


def length(runs):
    return sum(last - first for first, last in runs)


def overlap(a, b):
    """How long both ran at once, in ns."""
    total, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def switches(a, b):
    """The times between a run of one and the next run of the other, in us, while both had work."""
    begin, end = max(a[0][0], b[0][0]), min(a[-1][1], b[-1][1])
    all_runs = sorted([(*run, 0) for run in a] + [(*run, 1) for run in b])
    return [
        (after[0] - before[1]) / 1000
        for before, after in zip(all_runs, all_runs[1:])
        if before[2] != after[2] and begin <= before[1] and after[0] <= end and after[0] > before[1]
    ]


def say(what, a, b):
    """How two processes share the GPU."""
    if isinstance(a, str) or isinstance(b, str):
        return print(f"{what:46} failed: {a if isinstance(a, str) else ''} {b if isinstance(b, str) else ''}")
    both = max(1, min(a[-1][1], b[-1][1]) - max(a[0][0], b[0][0]))
    how = f"at once for {100 * overlap(a, b) / both:.0f} % of the time"
    turns = [f"{statistics.median((last - first) / 1000 for first, last in runs):.0f} us" for runs in (a, b)]
    lost = switches(a, b)
    cost = f"; switch p50 {statistics.median(lost):.0f} us, max {max(lost):.0f} us, {len(lost)} of them" if lost else ""
    print(f"{what:46} {how}; turns (median) {turns[0]}, {turns[1]}{cost}")


def memory():
    print("\n# Memory, in MiB less")
    holder = subprocess.Popen(
        [PROBE, "holds"], env=environment(NOWHERE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def free():
        time.sleep(0.3)
        holder.stdin.write("\n")
        holder.stdin.flush()
        return int(holder.stdout.readline()) / 2**20

    def step(what, before):
        now = free()
        print(f"{what:46} {before - now:.0f}")
        return now

    now = free()
    outside = Watch(NOWHERE)
    now = step("one more context outside of MPS", now)
    with mps("memory-a") as first, mps("memory-b") as second:
        one = Watch(first)
        now = step("an MPS server and its first client", now)
        two = Watch(first)
        now = step("its second client", now)
        three = Watch(second)
        step("a second MPS server and its first client", now)
        for watch in (outside, one, two, three):
            watch.end()
    holder.stdin.close()
    holder.wait()


def turns():
    print("\n# Who has the GPU")
    print("outside of MPS:", ask("about", **NOWHERE))
    say("two processes outside of MPS", *together(Watch(NOWHERE), Watch(NOWHERE)))
    for what, size in (
        ("132 x 1024 threads", (132, 1024, 0)),
        ("132 x 1024 threads, 200 KiB shared", (132, 1024, 204_800)),
    ):
        say(f"  {what} beside 1 x 32", *together(Watch(NOWHERE, *size), Watch(NOWHERE)))
        say(f"  two with {what}", *together(Watch(NOWHERE, *size), Watch(NOWHERE, *size)))
    idle = Watch(NOWHERE, seconds=0.01, linger=SECONDS + 2)
    idle.go()
    idle.runs()
    alone = Watch(NOWHERE)
    alone.go()
    runs = alone.runs()
    idle.end(), alone.end()
    stops = f"{len(runs) - 1} stops in {SECONDS} s" if not isinstance(runs, str) else runs
    print(f"{'beside a context with nothing to run':46} {stops}")
    with mps("turns-a") as first, mps("turns-b") as second:
        print("in MPS a:", ask("about", **first))
        print("in MPS b:", ask("about", **second))
        say("two clients of one MPS", *together(Watch(first), Watch(first)))
        say("a client and a process outside", *together(Watch(first), Watch(NOWHERE)))
        say("clients of two MPS", *together(Watch(first), Watch(second)))


def faults():
    print(f"\n# Faults, {FAULTS} of each kind; how many reached the other")
    with mps("faults-a") as first, mps("faults-b") as second:
        for what, sick, well in (
            ("in MPS, other outside", first, NOWHERE),
            ("outside, other in MPS", NOWHERE, first),
            ("in MPS a, other in MPS b", first, second),
            ("in MPS, other in the same", first, first),
        ):
            reached, errors = {}, {}
            for kind in ("illegal", "misaligned", "trap"):
                reached[kind] = 0
                for _ in range(FAULTS if well is not sick else 1):
                    watch = Watch(well, seconds=1.2)
                    watch.go()
                    errors[kind] = ask("fault", kind, **sick)
                    reached[kind] += isinstance(watch.runs(), str)
                    watch.end()
            print(f"{what:46} {reached}; the faulty one: {errors['illegal']}")


def gpuctl():
    print("\n# gpuctl: an isolated slice beside programs in an MPS that gpuctld starts")
    env = environment({"GPUCTL_SOCKET": str(SCRATCH / "socket")})
    env["PATH"] = f"{BUILD / 'src/gpuctl'}:{BUILD / 'src/gpuctld'}:{env['PATH']}"
    config = SCRATCH / "gpuctl.toml"
    config.write_text('daemon.mps = "manage"\n')
    log = open(SCRATCH / "gpuctld.log", "w")
    command = ["gpuctld", "--socket", env["GPUCTL_SOCKET"], "--state", SCRATCH / "state", "--config", config]
    daemon = subprocess.Popen(list(map(str, command)), env=env, stderr=log)

    def run(*words):
        done = subprocess.run(["gpuctl", *words], env=env, capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    try:
        until = time.monotonic() + 60
        while "clients" not in run("status") and time.monotonic() < until:
            time.sleep(0.2)
        print(run("create-slice", "ls", "--isolation", "isolated", "--priority", "10"), end="")
        print(run("create-slice", "batch"), end="")
        in_slice = lambda name: ("gpuctl", "run", "--slice", name)  # noqa: E731
        batch = Watch(env, 132, 1024, seconds=2 * SECONDS, command=in_slice("batch"))
        ls = Watch(env, seconds=SECONDS, command=in_slice("ls"))
        batch.go()
        time.sleep(0.5)  # the agent is there, and the turns are set
        ls.go()
        time.sleep(0.5)
        print(run("status"), end="")
        print(run("top", "--once"), end="")
        runs = [watch.runs() for watch in (ls, batch)]
        say("ls (isolated, priority 10), batch", *runs)
        ls.end(), batch.end()
    finally:
        daemon.terminate()
        daemon.wait()
        for place in (SCRATCH / "socket.mps").glob("*"):
            where = {**env, "CUDA_MPS_PIPE_DIRECTORY": str(place)}
            subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 2\n", env=where, text=True, timeout=30)
        print((SCRATCH / "gpuctld.log").read_text(), end="")


def main():
    for part in (turns, memory, faults, *([gpuctl] if BUILD else [])):
        try:
            part()
        except Exception as failure:  # what the others find is worth having
            print(f"{part.__name__} failed: {failure!r}")


main()
