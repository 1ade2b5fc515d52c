// out[i] = the Euclidean distance of place i, a pair (latitude, longitude), from the one that is looked for.
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

extern "C" __global__ void nearestNeighbor(const float2* places, float* out, float latitude, float longitude,
                                           unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float2 place = places[i];
  const float north = subtract(latitude, place.x);
  const float east = subtract(longitude, place.y);
  out[i] = square_root(multiply_add(north, north, multiply(east, east)));
}
