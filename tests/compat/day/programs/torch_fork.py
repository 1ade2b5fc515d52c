# compat: forks of a program that has used the GPU: a child that computes on its CPU, one that tries the GPU
# modules: torch numpy
import ctypes
import hashlib
import os
import sys

import numpy
import torch


def in_child(name, function):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            print(name, function(), flush=True)
        except RuntimeError as error:
            print(name, type(error).__name__, str(error).partition(". ")[0].splitlines()[0], flush=True)
        os._exit(7)
    print(name, "ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def on_cpu():
    squares = numpy.arange(1 << 18, dtype=numpy.int64) ** 2
    return hashlib.sha256(squares.tobytes()).hexdigest()[:16]


def driver():
    cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    return cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), cuda.cuCtxSynchronize()


def main():
    held = torch.arange(1 << 18, dtype=torch.int64, device="cuda")
    for _ in range(200):
        held.mul_(5).add_(7).bitwise_and_(0xFFFF)
    in_child("CPU", on_cpu)
    in_child("GPU", lambda: torch.zeros(4, device="cuda").sum().item())
    in_child("driver", driver)
    print("parent", held.sum().item())


if __name__ == "__main__":
    main()
