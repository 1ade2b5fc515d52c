// Simulates heart muscle cells, one cell a thread: long block-tasks of few warps. The state at the end and the number
// of steps taken stand in nine rows of `count` words, the state in the order of MyocyteState.
#include "kernels/particles/myocyte_model.h"

using namespace gpuctl::bench;

extern "C" __global__ void myocyte(const MyocyteCell* __restrict__ cells, float* out, float milliseconds,
                                   unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float state[kMyocyteStates];
  const unsigned steps = simulate_myocyte(cells[i], milliseconds, state);
  for (unsigned k = 0; k < kMyocyteStates; ++k) out[k * count + i] = state[k];
  out[kMyocyteStates * count + i] = __uint_as_float(steps);
}
