# compat: CuPy: a kernel that writes where there is no memory, and what the calls after it say
# modules: cupy
import sys

import cupy

SOURCE = 'extern "C" __global__ void wild(int* at) { at[threadIdx.x] = 1; }'


def said(what, function):
    try:
        function()
        print(what, "well", flush=True)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        print(what, error, flush=True)
    except cupy.cuda.driver.CUDADriverError as error:
        print(what, error, flush=True)


def main():
    before = cupy.arange(1000)
    print("before", int(before.sum()), flush=True)
    wild = cupy.RawKernel(SOURCE, "wild")
    wild((1,), (32,), (cupy.uint64(16),))
    said("synchronize", cupy.cuda.Device().synchronize)
    said("again", cupy.cuda.Device().synchronize)
    said("allocate", lambda: cupy.cuda.runtime.malloc(1024))
    sys.stdout.flush()
    sys.exit(5)


if __name__ == "__main__":
    main()
