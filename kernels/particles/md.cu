// Lennard-Jones forces on atoms, each with a list of the atoms near it: neighbor k of atom i stands at
// list[k * count + i]. One atom a thread; neighbors beyond the cutoff exert no force. The fourth component of a force
// is the number of neighbors within the cutoff.
#include "kernels/particles/md_potential.h"
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

extern "C" __global__ void md(const float4* __restrict__ positions, const unsigned* __restrict__ neighbors,
                              const unsigned* __restrict__ list, float4* forces, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float4 here = positions[i];
  const unsigned listed = neighbors[i];
  float4 force = {0.0f, 0.0f, 0.0f, 0.0f};
  for (unsigned k = 0; k < listed; ++k) {
    const float4 there = positions[list[k * count + i]];
    const float x = subtract(here.x, there.x);
    const float y = subtract(here.y, there.y);
    const float z = subtract(here.z, there.z);
    const float square = multiply_add(x, x, multiply_add(y, y, multiply(z, z)));
    if (square < kMdCutoffSquare) {
      const float inverse = divide(1.0f, square);
      const float sixth = multiply(multiply(inverse, inverse), inverse);
      const float strength = multiply(multiply(inverse, sixth), subtract(multiply(kMdRepulsion, sixth), kMdAttraction));
      force.x = multiply_add(x, strength, force.x);
      force.y = multiply_add(y, strength, force.y);
      force.z = multiply_add(z, strength, force.z);
      force.w = add(force.w, 1.0f);
    }
  }
  forces[i] = force;
}
