# compat: Numba: element by element, a reduction in shared memory, atomics, two streams
# modules: numba numpy
import sys

import numpy
from numba import cuda, int64
from printed import check

ROUNDS = 60
THREADS = 256


@cuda.jit
def mixed(left, right, out):
    at = cuda.grid(1)
    if at < out.size:
        out[at] += left[at] * 3 + right[at] & 0xFFFF


@cuda.jit
def sums(values, out):
    held = cuda.shared.array(THREADS, int64)
    at, thread = cuda.grid(1), cuda.threadIdx.x
    held[thread] = values[at] if at < values.size else 0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            held[thread] += held[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        cuda.atomic.add(out, 0, held[0])


def main():
    if not cuda.is_available():
        print("Numba finds no GPU", file=sys.stderr)
        sys.exit(77)
    rng = numpy.random.default_rng(1)
    left, right = (rng.integers(0, 1000, 300_001, dtype=numpy.int64) for _ in range(2))
    blocks = (left.size + THREADS - 1) // THREADS
    on_gpu = [cuda.to_device(array) for array in (left, right)]
    streams = [cuda.stream() for _ in range(2)]
    outs = [cuda.to_device(numpy.zeros(left.size, dtype=numpy.int64)) for _ in streams]
    cuda.synchronize()
    for _ in range(ROUNDS):
        for stream, out in zip(streams, outs):
            mixed[blocks, THREADS, stream](*on_gpu, out)
    cuda.synchronize()
    for number, out in enumerate(outs):
        check(f"stream {number}", out.copy_to_host(), (left * 3 + right & 0xFFFF) * ROUNDS)
    total = cuda.to_device(numpy.zeros(1, dtype=numpy.int64))
    for _ in range(ROUNDS):
        sums[blocks, THREADS](on_gpu[0], total)
    check("sum", total.copy_to_host(), numpy.array([left.sum() * ROUNDS]))


if __name__ == "__main__":
    main()
