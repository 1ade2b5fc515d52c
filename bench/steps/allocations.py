"""A program that allocates device memory in equal pieces: allocations.py MIB COUNT prints how long each took, in us, as
JSON. Each is an allocation of the driver's: PyTorch keeps none of these sizes back.
"""

import json
import sys
import time

import torch


def main():
    mib, count = int(sys.argv[1]), int(sys.argv[2])
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    kept, took = [], []
    for _ in range(count):
        began = time.monotonic_ns()
        kept.append(torch.empty(mib << 20, dtype=torch.uint8, device="cuda"))
        took.append((time.monotonic_ns() - began) / 1000)
    print(json.dumps(took))


if __name__ == "__main__":
    main()
