# compat: a program that uses the GPU starts others that use it, by subprocess and through a shell, and goes on
# attached: 3
# modules: cupy
import subprocess
import sys

import cupy


def compute(seed):
    held = cupy.arange(1 << 18, dtype=cupy.int64)
    for turn in range(50):
        held = (held * 5 + turn + seed) & 0xFFFF
    return int(held.sum())


def main():
    print("parent", compute(1), flush=True)
    child = [sys.executable, __file__, "child"]
    for what, command in (("child", child), ("shell", ["sh", "-c", 'exec "$@"', "sh", *child])):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(what, done.returncode, done.stdout.strip(), done.stderr.strip(), flush=True)
    print("parent", compute(2), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        print("computed", compute(3))
        sys.exit(4)
    main()
