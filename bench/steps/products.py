"""A batch program of kernels without PTX: cuBLAS through PyTorch, a product a step, some ms of steps issued ahead.
products.py SECONDS FILE... writes when each step was done (CLOCK_MONOTONIC, ns) into FILE. SIGTERM ends it early. With
several files there is a thread for each, on a GPU of its own.

Prints "ready" to stderr once it computes.
"""

import collections
import signal
import sys
import threading
import time

import torch

SIZE = 8192
AHEAD = 6


def compute(gpu, path, until, over):
    with torch.cuda.device(gpu):
        left, right, out = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(3))
        torch.mm(left, right, out=out)
        torch.cuda.synchronize()
        done, ahead = [], collections.deque()
        while time.monotonic() < until and not over:
            while len(ahead) < AHEAD:
                torch.mm(left, right, out=out)
                ahead.append(torch.cuda.Event())
                ahead[-1].record()
            ahead.popleft().synchronize()
            done.append(time.monotonic_ns())
            if len(done) == 1:
                print("ready", file=sys.stderr, flush=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{at}\n" for at in done)


def main():
    seconds, paths = float(sys.argv[1]), sys.argv[2:]
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=compute, args=(gpu, path, until, over)) for gpu, path in enumerate(paths[1:], start=1)
    ]
    for thread in threads:
        thread.start()
    compute(0, paths[0], until, over)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
