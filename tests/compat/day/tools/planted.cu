// compat: one mistake of each kind that a tool looks for: planted KIND
// args: bounds
// args: race
// args: uninitialised
// args: barrier
// args: address
#include <cstring>

#include "check.h"

namespace {

constexpr int kThreads = 96;

__global__ void write_past(int* data, int count) {
  if (threadIdx.x == 0) data[count] = 1;
}

/// Each thread reads what a thread of another warp writes, and none waits.
__global__ void read_too_early(int* out) {
  __shared__ int held[kThreads];
  held[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = held[(threadIdx.x + 32) % kThreads];
}

__global__ void read_unwritten(const int* data, int* out) {
  if (threadIdx.x == 0) out[0] = data[7];
}

/// Some threads of the last warp are not there.
__global__ void wait_apart(int* out, int count) {
  if (static_cast<int>(threadIdx.x) < count) {
    out[threadIdx.x] = 1;
    __syncthreads();
  }
}

__global__ void write_nowhere(int* at) {
  at[threadIdx.x] = 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const auto is = [argv](const char* name) { return std::strcmp(argv[1], name) == 0; };
  int *data = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&data, 100 * sizeof(int)));
  CHECK(cudaMalloc(&out, 128 * sizeof(int)));
  if (is("bounds")) write_past<<<1, 32>>>(data, 100);
  if (is("race")) read_too_early<<<1, kThreads>>>(out);
  if (is("uninitialised")) read_unwritten<<<1, 32>>>(data, out);
  if (is("barrier")) wait_apart<<<1, kThreads>>>(out, 70);
  if (is("address")) write_nowhere<<<1, 32>>>(reinterpret_cast<int*>(16));
  std::printf("planted %s: %s\n", argv[1], cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
