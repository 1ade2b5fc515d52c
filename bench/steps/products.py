"""A batch program of kernels without PTX: cuBLAS through PyTorch, a product a step, some ms of steps issued ahead.
products.py SECONDS FILE writes when each step was done (CLOCK_MONOTONIC, ns) into FILE. SIGTERM ends it early.

Prints "ready" to stderr once it computes.
"""

import collections
import signal
import sys
import time

import torch

SIZE = 8192
AHEAD = 6


def main():
    seconds, path = float(sys.argv[1]), sys.argv[2]
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    left, right, out = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(3))
    torch.mm(left, right, out=out)
    torch.cuda.synchronize()
    print("ready", file=sys.stderr, flush=True)
    done, ahead, until = [], collections.deque(), time.monotonic() + seconds
    while time.monotonic() < until and not over:
        while len(ahead) < AHEAD:
            torch.mm(left, right, out=out)
            ahead.append(torch.cuda.Event())
            ahead[-1].record()
        ahead.popleft().synchronize()
        done.append(time.monotonic_ns())
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{at}\n" for at in done)


if __name__ == "__main__":
    main()
