"""A program whose module has a managed variable, and machine code alone: managed.py SECONDS FILE. It adds one to the
variable all the time; FILE gets when each step was done, as products.py writes it. At the end, also after SIGTERM, it
prints whether the variable is what it is to be: "right" or "wrong". Needs CuPy.

Prints "ready" to stderr once it computes.
"""

import signal
import sys
import time

import cupy

CODE = """
__device__ __managed__ int count;
extern "C" __global__ void add(int* sum) { *sum = ++count; }
"""


def main():
    seconds, path = float(sys.argv[1]), sys.argv[2]
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    add = cupy.RawModule(code=CODE).get_function("add")
    total = cupy.zeros(1, dtype=cupy.int32)
    steps, until = 0, time.monotonic() + seconds
    with open(path, "w", encoding="utf-8", buffering=1) as file:
        while time.monotonic() < until and not over:
            add((1,), (1,), (total,))
            cupy.cuda.runtime.deviceSynchronize()
            steps += 1
            file.write(f"{time.monotonic_ns()}\n")
            if steps == 1:
                print("ready", file=sys.stderr, flush=True)
            time.sleep(0.001)
    print("right" if int(total[0]) == steps else "wrong")


if __name__ == "__main__":
    main()
