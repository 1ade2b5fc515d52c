// compat: tail launches and fire-and-forget launches of kernels by kernels
// libs: cudadevrt
// builds: rdc
#include "mix.h"

namespace {

constexpr int kCount = 1 << 17, kDepth = 100, kTurns = 30;

__device__ unsigned checked;

__global__ void turn(unsigned* data, unsigned round) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = mix(data[i], round, kDepth);
}

/// Runs behind all that its launcher launched, and launches the next turn.
__global__ void next(unsigned* data, unsigned round) {
  if (round == kTurns) return;
  ++checked;
  turn<<<kCount / 256, 256, 0, cudaStreamFireAndForget>>>(data, round);
  next<<<1, 1, 0, cudaStreamTailLaunch>>>(data, round + 1);
}

}  // namespace

int main() {
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
  for (int i = 0; i < 3; ++i) next<<<1, 1>>>(data, 0);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  std::vector<unsigned> got(kCount);
  unsigned turns = 0;
  CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyFromSymbol(&turns, checked, sizeof turns));
  int wrong = 0;
  for (unsigned i = 0; i < kCount; i += 1009) {
    unsigned x = i;
    for (int launch = 0; launch < 3; ++launch)
      for (unsigned round = 0; round < kTurns; ++round) x = mix(x, round, kDepth);
    wrong += got[i] != x;
  }
  std::printf("turns %u, %s\n", turns, wrong == 0 ? "right" : "WRONG");
  print_hash("tail", got.data(), kCount * sizeof(unsigned));
  return 0;
}
