// The simplest CUDA program: default stream, blocking copies, one-dimensional grid.
#include "program.h"

__global__ void vectorAdd(const float* a, const float* b, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  const int rounds = rounds_from(argc, argv);
  constexpr int kCount = 20'011;
  const std::vector<float> a = small_numbers(kCount, 1);
  const std::vector<float> b = small_numbers(kCount, 2);
  std::vector<float> expected(kCount);
  for (int i = 0; i < kCount; ++i) expected[i] = a[i] + b[i];

  constexpr std::size_t kBytes = kCount * sizeof(float);
  float* device_a = nullptr;
  float* device_b = nullptr;
  float* device_out = nullptr;
  CUDA_CHECK(cudaMalloc(&device_a, kBytes));
  CUDA_CHECK(cudaMalloc(&device_b, kBytes));
  CUDA_CHECK(cudaMalloc(&device_out, kBytes));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), kBytes, cudaMemcpyHostToDevice));

  Rounds report("vector_add", rounds);
  std::vector<float> out(kCount);
  for (int round = 0; round < rounds; ++round) {
    CUDA_CHECK(cudaMemset(device_out, 0xff, kBytes));
    vectorAdd<<<(kCount + 255) / 256, 256>>>(device_a, device_b, device_out, kCount);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(out.data(), device_out, kBytes, cudaMemcpyDeviceToHost));
    report.compare(out.data(), expected.data(), kBytes);
  }
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_out));
  return report.finish();
}
