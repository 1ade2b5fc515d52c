// out = matrix * x, the matrix in compressed rows, one row a warp: lane k sums entries k, k + 32, ..., then the lanes'
// sums are added up in halves. The last block has warps without a row.
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

namespace {
constexpr unsigned kLanes = 32;
constexpr unsigned kAll = 0xffffffff;
}  // namespace

extern "C" __global__ void spmv(const float* __restrict__ values, const unsigned* __restrict__ columns,
                                const unsigned* __restrict__ starts, const float* __restrict__ x, float* out,
                                unsigned rows) {
  const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  if (row >= rows) return;
  const unsigned end = starts[row + 1];
  float sum = 0.0f;
  for (unsigned i = starts[row] + lane; i < end; i += kLanes) sum = multiply_add(values[i], x[columns[i]], sum);
  for (unsigned half = kLanes / 2; half != 0; half /= 2) sum = add(sum, __shfl_down_sync(kAll, sum, half));
  if (lane == 0) out[row] = sum;
}
