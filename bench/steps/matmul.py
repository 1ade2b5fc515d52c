"""A batch program of kernels without PTX: cuBLAS through PyTorch. matmul.py SECONDS reports the rate, and whether the
last result is right.

Prints "ready" once it computes, and a line of JSON at the end.
"""

import json
import sys
import time

import torch

SIZE = 8192
AT_ONCE = 10  # between two looks at the clock


def main():
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    expected = a @ b
    torch.cuda.synchronize()
    print("ready", file=sys.stderr, flush=True)
    count, start = 0, time.monotonic()
    while (elapsed := time.monotonic() - start) < float(sys.argv[1]):
        for _ in range(AT_ONCE):
            result = a @ b
        count += AT_ONCE
        torch.cuda.synchronize()
    print(json.dumps({"per_s": count / elapsed, "mismatches": int(not torch.equal(result, expected))}))


if __name__ == "__main__":
    main()
