#!/usr/bin/env python3
"""Kernels that CuPy compiles with NVRTC: raw CUDA C++, an element-wise one, a reduction of one's own and CuPy's sum.

cupy_program.py ROUNDS (rounds.py). All is done with whole numbers, so no order of summation shows.
"""

import cupy
import rounds

COUNT = 1 << 23
THREADS = 256
STEPS = 64  # of the generator, for each number

SOURCE = r"""
extern "C" __global__ void scramble(unsigned* values, unsigned count, unsigned steps) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  unsigned value = values[at] + at;
  for (unsigned step = 0; step < steps; ++step) {
    value = value * 1664525u + 1013904223u;
    value ^= value >> 15;
  }
  values[at] = value;
}
"""


class Kernels:
    def __init__(self):
        self.scramble = cupy.RawKernel(SOURCE, "scramble")
        self.mix = cupy.ElementwiseKernel(
            "uint32 x, uint32 y", "uint32 z", "z = (x >> 3) ^ (y * 2654435761u)", "mix_words"
        )
        self.odd = cupy.ReductionKernel("uint32 x", "uint64 y", "x & 1u", "a + b", "y = a", "0", "count_odd")
        self.values = cupy.arange(COUNT, dtype=cupy.uint32)
        self.mixed = cupy.zeros(COUNT, dtype=cupy.uint32)
        self.totals = cupy.zeros(2, dtype=cupy.uint64)

    def step(self):
        self.scramble((COUNT // THREADS,), (THREADS,), (self.values, cupy.uint32(COUNT), cupy.uint32(STEPS)))
        self.mix(self.values, self.mixed, self.mixed)
        self.totals[0] += self.odd(self.mixed)
        self.totals[1] += self.mixed.sum(dtype=cupy.uint64)

    def contents(self):
        return b"".join(cupy.asnumpy(array).tobytes() for array in (self.values, self.mixed, self.totals))


def main():
    kernels = Kernels()
    rounds.main("cupy_program", kernels.step, cupy.cuda.Device().synchronize, kernels.contents)


if __name__ == "__main__":
    main()
