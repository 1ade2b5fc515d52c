# compat: a program that uses the GPU becomes another Python that uses it; before that one that is not there
# attached: 2
# modules: cupy
import os
import sys

import cupy


def compute(seed):
    held = cupy.arange(1 << 18, dtype=cupy.int64)
    for turn in range(50):
        held = (held * 5 + turn + seed) & 0xFFFF
    return int(held.sum())


def main():
    print("first", compute(1), flush=True)
    try:
        os.execv("/nowhere/python", ["python"])
    except OSError as error:
        print("not there:", error.strerror, flush=True)
    print("still the first", compute(2), flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "second"])


if __name__ == "__main__":
    if sys.argv[1:] == ["second"]:
        print("second", compute(3))
    else:
        main()
