// One time step of bodies that attract each other, every one every other. A block of 128 threads moves 128 bodies; it
// walks through all of them by tiles of 128 in shared memory. A body is eight words: place and mass, speed and nothing.
#include "kernels/particles/nbody_force.h"

namespace {
using namespace gpuctl::bench;

constexpr unsigned kThreads = 128;
}  // namespace

extern "C" __global__ void nbody(const float4* from, float4* to, unsigned bodies) {
  __shared__ float4 tile[kThreads];
  const unsigned body = blockIdx.x * kThreads + threadIdx.x;
  const float4 place = from[2 * min(body, bodies - 1)];
  Vector pull = {0.0f, 0.0f, 0.0f};
  for (unsigned first = 0; first < bodies; first += kThreads) {
    if (first + threadIdx.x < bodies) tile[threadIdx.x] = from[2 * (first + threadIdx.x)];
    __syncthreads();
    const unsigned count = min(kThreads, bodies - first);
    for (unsigned i = 0; i < count; ++i) {
      const float4 other = tile[i];
      add_pull(pull, subtract(other.x, place.x), subtract(other.y, place.y), subtract(other.z, place.z), other.w);
    }
    __syncthreads();
  }
  if (body >= bodies) return;
  float4 speed = from[2 * body + 1];
  speed.x = multiply_add(pull.x, kTimeStep, speed.x);
  speed.y = multiply_add(pull.y, kTimeStep, speed.y);
  speed.z = multiply_add(pull.z, kTimeStep, speed.z);
  to[2 * body] = make_float4(multiply_add(speed.x, kTimeStep, place.x), multiply_add(speed.y, kTimeStep, place.y),
                             multiply_add(speed.z, kTimeStep, place.z), place.w);
  to[2 * body + 1] = speed;
}
