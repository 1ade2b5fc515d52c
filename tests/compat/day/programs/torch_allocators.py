# compat: PyTorch's allocator with expandable segments, and the driver's: grows, frees, goes on
# modules: torch
# args: expandable_segments:True
# args: backend:cudaMallocAsync
import os
import sys

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[1]

import torch


def main():
    print("backend", torch.cuda.get_allocator_backend())
    held, total = [], torch.zeros((), dtype=torch.int64, device="cuda")
    for turn in range(60):
        held.append(torch.full(((turn % 7 + 1) << 18,), turn, dtype=torch.int64, device="cuda"))
        if turn % 3 == 2:
            total += held.pop(turn % len(held)).sum()
        if turn % 20 == 19:
            torch.cuda.empty_cache()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for each in held:
            each.record_stream(side)
            total += each.sum()
    torch.cuda.current_stream().wait_stream(side)
    print("total", total.item())


if __name__ == "__main__":
    main()
