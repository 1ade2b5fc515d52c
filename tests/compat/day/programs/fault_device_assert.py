# compat: PyTorch: an index out of range, which a kernel asserts
# modules: torch
# ignore: block: \[\d+,\d+,\d+\]|0x[0-9a-f]+
import sys

import torch


def main():
    table = torch.arange(10, device="cuda")
    print("before", table.sum().item(), flush=True)
    for what in ("first", "again"):
        try:
            found = table[torch.tensor([3, 11]).cuda()] if what == "first" else table + 1
            torch.cuda.synchronize()
            print(what, found.tolist(), flush=True)
        except RuntimeError as error:
            print(what, type(error).__name__, str(error).splitlines()[0], flush=True)
    sys.exit(5)


if __name__ == "__main__":
    main()
