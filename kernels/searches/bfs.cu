// Breadth-first search, one launch a level. A warp takes 32 vertices, finds those of the level by a vote, and visits
// the edges of each with all its lanes. Several lanes, of different blocks too, may find the same vertex: all write the
// same.
#include "kernels/arrays/block_scan.cuh"

namespace {
constexpr unsigned kUnreached = ~0u;
}

using gpuctl::bench::kAllLanes;
using gpuctl::bench::kWarp;

extern "C" __global__ void bfsStart(unsigned* levels, unsigned vertices, unsigned source) {
  const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
  if (vertex >= vertices) return;
  levels[vertex] = vertex == source ? 0 : kUnreached;
}

extern "C" __global__ void bfsLevel(const unsigned* first_edge, const unsigned* edges, unsigned* levels,
                                    unsigned vertices, unsigned level) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned vertex = blockIdx.x * blockDim.x + threadIdx.x;
  const bool visits = vertex < vertices && levels[vertex] == level;
  const unsigned begin = visits ? first_edge[vertex] : 0;
  const unsigned end = visits ? first_edge[vertex + 1] : 0;
  for (unsigned waiting = __ballot_sync(kAllLanes, visits); waiting != 0; waiting &= waiting - 1) {
    const int next = __ffs(static_cast<int>(waiting)) - 1;
    const unsigned last = __shfl_sync(kAllLanes, end, next);
    for (unsigned edge = __shfl_sync(kAllLanes, begin, next) + lane; edge < last; edge += kWarp) {
      const unsigned neighbor = edges[edge];
      if (levels[neighbor] == kUnreached) levels[neighbor] = level + 1;
    }
    __syncwarp();
  }
}
