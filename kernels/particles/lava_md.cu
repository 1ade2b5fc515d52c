// Potential of, and force on, particles in a cube of boxes: each particle (x, y, z, charge) feels those of its own box
// and of the boxes around it, with a strength that falls off as exp(-r^2 / 2). One box a block, one particle a thread;
// the particles of one neighboring box after the other are staged in shared memory. The boxes around box b stand at
// around[starts[b]] to around[starts[b + 1]]. Of an effect, x, y and z are the force, w is the potential.
#include "kernels/problem/approximations.h"
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

namespace {
constexpr unsigned kThreads = 128;
}

extern "C" __global__ void lavaMD(const float4* __restrict__ particles, const unsigned* __restrict__ starts,
                                  const unsigned* __restrict__ around, float4* effects, unsigned per_box) {
  __shared__ float4 others[kThreads];
  const bool busy = threadIdx.x < per_box;
  const unsigned at = blockIdx.x * per_box + threadIdx.x;
  float4 here = {0.0f, 0.0f, 0.0f, 0.0f};
  if (busy) here = particles[at];
  float4 effect = {0.0f, 0.0f, 0.0f, 0.0f};
  const unsigned end = starts[blockIdx.x + 1];
  for (unsigned k = starts[blockIdx.x]; k < end; ++k) {
    if (busy) others[threadIdx.x] = particles[around[k] * per_box + threadIdx.x];
    __syncthreads();
    if (busy) {
      for (unsigned j = 0; j < per_box; ++j) {
        const float4 other = others[j];
        const float x = subtract(here.x, other.x);
        const float y = subtract(here.y, other.y);
        const float z = subtract(here.z, other.z);
        const float square = multiply_add(x, x, multiply_add(y, y, multiply(z, z)));
        const float potential = multiply(other.w, approximate_exp(multiply(-0.5f, square)));
        effect.x = multiply_add(x, potential, effect.x);
        effect.y = multiply_add(y, potential, effect.y);
        effect.z = multiply_add(z, potential, effect.z);
        effect.w = add(effect.w, potential);
      }
    }
    __syncthreads();
  }
  if (busy) effects[at] = effect;
}
