// compat: kernels launched by kernels, in streams of the device, to a depth of three
// libs: cudadevrt
// builds: rdc
#include "mix.h"

namespace {

constexpr int kParts = 64, kPart = 4096, kDepth = 100, kLaunches = 20;

__global__ void leaf(unsigned* data, unsigned round) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = mix(data[i], round, kDepth);
}

__global__ void half(unsigned* data, int count, unsigned round) {
  leaf<<<static_cast<unsigned>(count) / 256, 256>>>(data, round);
  leaf<<<static_cast<unsigned>(count) / 256, 256>>>(data, round + 1);
}

/// Each thread launches two kernels for its part, which launch two each.
__global__ void root(unsigned* data, unsigned round) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  unsigned* part = data + (blockIdx.x * blockDim.x + threadIdx.x) * kPart;
  half<<<1, 1, 0, stream>>>(part, kPart / 2, round);
  half<<<1, 1, 0, stream>>>(part + kPart / 2, kPart / 2, round + 5);
  cudaStreamDestroy(stream);
}

}  // namespace

int main() {
  constexpr int kCount = kParts * kPart;
  CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
  for (int i = 0; i < kLaunches; ++i) {
    root<<<kParts / 8, 8>>>(data, static_cast<unsigned>(i));
    CHECK(cudaGetLastError());
  }
  CHECK(cudaDeviceSynchronize());
  std::vector<unsigned> got(kCount);
  CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned i = 0; i < kCount; i += 1009) {
    unsigned x = i;
    for (unsigned round = 0; round < kLaunches; ++round) {
      const unsigned first = i % kPart < kPart / 2 ? round : round + 5;
      x = mix(mix(x, first, kDepth), first + 1, kDepth);
    }
    wrong += got[i] != x;
  }
  std::printf("nested %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("nested", got.data(), kCount * sizeof(unsigned));
  return 0;
}
