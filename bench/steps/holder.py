"""A program with much device memory that computes all the time: holder.py GIB SECONDS FILE. FILE gets when each step
was done, as products.py writes it. At the end, also after SIGTERM, it prints whether the memory is what it was: "right"
or "wrong". With 0 SECONDS it computes one step, and ends without a look at the memory when its input does.

Prints "ready" to stderr once it computes.
"""

import signal
import sys
import time

import torch

SIZE = 2048
PIECE = 1 << 24


def main():
    gib, seconds, path = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    piece = torch.arange(PIECE, dtype=torch.int32, device="cuda")
    held = torch.empty((int(gib * (1 << 28)) // PIECE, PIECE), dtype=torch.int32, device="cuda")
    held.copy_(piece.expand_as(held))
    left, out = (torch.ones(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    torch.cuda.synchronize()
    print("ready", file=sys.stderr, flush=True)
    until = time.monotonic() + seconds
    with open(path, "w", encoding="utf-8", buffering=1) as file:
        while True:
            torch.mm(left, left, out=out)
            torch.cuda.synchronize()
            file.write(f"{time.monotonic_ns()}\n")
            if time.monotonic() >= until or over:
                break
    if seconds == 0:
        sys.stdin.read()
        return print("ends")
    right = all(torch.equal(one, piece) for one in held) and bool((out == SIZE).all())
    print("right" if right else "wrong")


if __name__ == "__main__":
    main()
