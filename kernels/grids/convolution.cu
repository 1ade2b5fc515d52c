// A picture convolved with a filter that is the product of one across and one down, in two launches; outside the
// picture is zero. Blocks fetch what they need into shared memory, and every thread computes four pixels: side by side
// at a distance of a block across, one below the other down.
#include "kernels/grids/convolution_taps.h"

namespace {
using namespace gpuctl::bench;

constexpr int kPixels = 4;  // of a thread
constexpr int kRowsWide = 32;
constexpr int kRowsHigh = 4;
constexpr int kColumnsWide = 16;
constexpr int kColumnsHigh = 8;
}  // namespace

extern "C" __global__ void convolutionRows(const float* from, float* to, int wide, int high) {
  constexpr int kSpan = kPixels * kRowsWide;
  __shared__ float tile[kRowsHigh][kSpan + 2 * kTapsRadius];
  const int left = static_cast<int>(blockIdx.x) * kSpan;
  const int y = static_cast<int>(blockIdx.y) * kRowsHigh + static_cast<int>(threadIdx.y);
  for (int i = static_cast<int>(threadIdx.x); i < kSpan + 2 * kTapsRadius; i += kRowsWide) {
    const int x = left - kTapsRadius + i;
    tile[threadIdx.y][i] = x >= 0 && x < wide && y < high ? from[y * wide + x] : 0.0f;
  }
  __syncthreads();
  if (y >= high) return;
  for (int i = static_cast<int>(threadIdx.x); i < kSpan && left + i < wide; i += kRowsWide) {
    float sum = 0.0f;
    for (int tap = 0; tap <= 2 * kTapsRadius; ++tap) sum = multiply_add(kTaps[tap], tile[threadIdx.y][i + tap], sum);
    to[y * wide + left + i] = sum;
  }
}

extern "C" __global__ void convolutionColumns(const float* from, float* to, int wide, int high) {
  constexpr int kSpan = kPixels * kColumnsHigh;
  __shared__ float tile[kSpan + 2 * kTapsRadius][kColumnsWide];
  const int x = static_cast<int>(blockIdx.x) * kColumnsWide + static_cast<int>(threadIdx.x);
  const int top = static_cast<int>(blockIdx.y) * kSpan;
  for (int i = static_cast<int>(threadIdx.y); i < kSpan + 2 * kTapsRadius; i += kColumnsHigh) {
    const int y = top - kTapsRadius + i;
    tile[i][threadIdx.x] = x < wide && y >= 0 && y < high ? from[y * wide + x] : 0.0f;
  }
  __syncthreads();
  if (x >= wide) return;
  for (int i = static_cast<int>(threadIdx.y); i < kSpan && top + i < high; i += kColumnsHigh) {
    float sum = 0.0f;
    for (int tap = 0; tap <= 2 * kTapsRadius; ++tap) sum = multiply_add(kTaps[tap], tile[i + tap][threadIdx.x], sum);
    to[(top + i) * wide + x] = sum;
  }
}
