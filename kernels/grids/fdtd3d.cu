// One time step of a finite-difference scheme on a volume: a star stencil of radius 4, outside the volume zero. A block
// of 32 x 16 threads marches through the planes of its columns: what lies before and behind is in registers, a queue of
// nine values a thread, and the plane itself with its border in shared memory.
#include "kernels/grids/fdtd3d_weights.h"
#include "kernels/problem/rounded.h"

namespace {
using namespace gpuctl::bench;

constexpr int kWide = 32;
constexpr int kHigh = 16;
constexpr int kRadius = 4;
}  // namespace

extern "C" __global__ void FDTD3d(const float* from, float* to, int wide, int high, int deep) {
  __shared__ float plane[kHigh + 2 * kRadius][kWide + 2 * kRadius];
  const int x = static_cast<int>(blockIdx.x) * kWide + static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(blockIdx.y) * kHigh + static_cast<int>(threadIdx.y);
  const int tx = static_cast<int>(threadIdx.x) + kRadius;
  const int ty = static_cast<int>(threadIdx.y) + kRadius;
  const auto at = [&](int i, int j, int k) {
    const bool inside = i >= 0 && i < wide && j >= 0 && j < high && k < deep;
    return inside ? from[(k * high + j) * wide + i] : 0.0f;
  };

  float queue[2 * kRadius + 1];  // queue[kRadius + d] is of the plane d behind the one at hand
  for (int d = -kRadius; d <= kRadius; ++d) queue[kRadius + d] = d <= 0 ? 0.0f : at(x, y, d - 1);
  for (int z = 0; z < deep; ++z) {
    for (int i = 0; i < 2 * kRadius; ++i) queue[i] = queue[i + 1];
    queue[2 * kRadius] = at(x, y, z + kRadius);
    __syncthreads();
    plane[ty][tx] = queue[kRadius];
    if (threadIdx.x < kRadius) {
      plane[ty][threadIdx.x] = at(x - kRadius, y, z);
      plane[ty][tx + kWide] = at(x + kWide, y, z);
    }
    if (threadIdx.y < kRadius) {
      plane[threadIdx.y][tx] = at(x, y - kRadius, z);
      plane[ty + kHigh][tx] = at(x, y + kHigh, z);
    }
    __syncthreads();
    float sum = multiply(kFdtdWeights[0], queue[kRadius]);
#pragma unroll
    for (int r = 1; r <= kRadius; ++r) {
      const float along = add(queue[kRadius - r], queue[kRadius + r]);
      const float beside = add(plane[ty][tx - r], plane[ty][tx + r]);
      const float above = add(plane[ty - r][tx], plane[ty + r][tx]);
      sum = multiply_add(kFdtdWeights[r], add(add(along, beside), above), sum);
    }
    if (x < wide && y < high) to[(z * high + y) * wide + x] = sum;
  }
}
