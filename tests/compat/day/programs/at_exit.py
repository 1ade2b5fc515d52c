# compat: a program whose atexit functions and destructors use the GPU, while a thread of it is still there
# modules: torch
import atexit
import threading
import time

import torch


class Held:
    def __init__(self):
        self.values = torch.arange(1 << 18, dtype=torch.int64, device="cuda")

    def __del__(self):
        print("destructor", self.values.sum().item(), flush=True)


def last(held):
    held.mul_(3).bitwise_and_(0xFFFF)
    print("at exit", held.sum().item(), flush=True)


def main():
    held = torch.arange(1 << 18, dtype=torch.int64, device="cuda")
    atexit.register(last, held)
    atexit.register(torch.cuda.synchronize)
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    one = Held()
    for _ in range(200):
        held.mul_(5).add_(1).bitwise_and_(0xFFFF)
    print("main", held.numel(), flush=True)
    del one


if __name__ == "__main__":
    main()
