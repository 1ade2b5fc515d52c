# compat: a Triton kernel that writes where there is no memory, and what PyTorch says of it
# modules: torch triton
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def wild(held, far):
    tl.store(held + far + tl.arange(0, 128), 1)


def said(what, function):
    try:
        function()
        print(what, "well", flush=True)
    except RuntimeError as error:
        print(what, type(error).__name__, str(error).splitlines()[0], flush=True)


def main():
    held = torch.zeros(1024, dtype=torch.int32, device="cuda")
    print("before", held.sum().item(), flush=True)
    wild[(1,)](held, 1 << 44)
    said("synchronize", torch.cuda.synchronize)
    said("again", torch.cuda.synchronize)
    said("allocate", lambda: torch.zeros(1 << 26, device="cuda"))
    sys.exit(5)


if __name__ == "__main__":
    main()
