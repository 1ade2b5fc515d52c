# compat: python -X faulthandler: a program that uses the GPU ends well; one that has used it crashes
# modules: cupy
# ignore: (?m)^  File .*$|^Extension modules: .*$|<unknown>|<invalid frame>
import ctypes
import subprocess
import sys

CHILD = [sys.executable, "-X", "faulthandler", __file__]


def child(crashes):
    import cupy

    print("sum", int(cupy.arange(1 << 20, dtype=cupy.int64).sum()), flush=True)
    if crashes:
        ctypes.string_at(0)


def main():
    for what in ("ends", "crashes"):
        done = subprocess.run([*CHILD, what], capture_output=True, text=True, check=False)
        print(what, done.returncode, done.stdout.strip(), *done.stderr.strip().splitlines()[:1], flush=True)


if __name__ == "__main__":
    child(sys.argv[1] == "crashes") if sys.argv[1:] else main()
