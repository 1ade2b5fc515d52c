"""What the Python programs beside this file share: how they are told what to do, and what they print.

PROGRAM ROUNDS: one round, which also shows that everything works, then ROUNDS more, which are timed. It ends with a
line

    NAME: 41 rounds, hash 0123456789abcdef, loop 1.234567 s, first result 2.345678 s after its start

where the hash is that of all that was computed. PROGRAM -: after the first round it prints "ready T", T being the
monotonic clock in ns, and then runs as many rounds as each line on stdin says, answering "ran N in S s"; the end of
stdin is its end, with the line above. It knows nothing of slices."""

import hashlib
import os
import sys
import time


def since_start_s():
    """Seconds since this process began, which is before it became Python; by the clock ticks that the kernel keeps."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        began_ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began_ticks / os.sysconf("SC_CLK_TCK")


def main(name, one_round, wait, contents):
    """`one_round()` queues a round's work, `wait()` waits for the GPU, `contents()` gives all results as bytes."""
    rounds, loop_s = 0, 0.0

    def run(count):
        nonlocal rounds
        begin = time.perf_counter()
        for _ in range(count):
            one_round()
        wait()
        rounds += count
        return time.perf_counter() - begin

    run(1)
    first_s = since_start_s()
    wanted = sys.argv[-1]
    if wanted == "-":
        print(f"ready {time.monotonic_ns()}", flush=True)
        for line in sys.stdin:
            seconds = run(int(line))
            loop_s += seconds
            print(f"ran {int(line)} in {seconds:.6f} s", flush=True)
    else:
        loop_s = run(int(wanted))
    digest = hashlib.sha256(contents()).hexdigest()[:16]
    print(
        f"{name}: {rounds} rounds, hash {digest}, loop {loop_s:.6f} s, first result {first_s:.6f} s after its start",
        flush=True,
    )
