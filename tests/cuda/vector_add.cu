// The simplest CUDA program: default stream, blocking copies, one-dimensional grid.
#include "program.h"

__global__ void vectorAdd(const float* a, const float* b, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  Rounds rounds("vector_add", argc, argv);
  const int count = 20'011 * rounds.scale();
  const std::vector<float> a = small_numbers(count, 1);
  const std::vector<float> b = small_numbers(count, 2);
  std::vector<float> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = a[i] + b[i];

  const std::size_t bytes = count * sizeof(float);
  float* device_a = nullptr;
  float* device_b = nullptr;
  float* device_out = nullptr;
  CUDA_CHECK(cudaMalloc(&device_a, bytes));
  CUDA_CHECK(cudaMalloc(&device_b, bytes));
  CUDA_CHECK(cudaMalloc(&device_out, bytes));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

  std::vector<float> out(count);
  while (rounds.next()) {
    CUDA_CHECK(cudaMemset(device_out, 0xff, bytes));
    vectorAdd<<<(count + 255) / 256, 256>>>(device_a, device_b, device_out, count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
    rounds.compare(out.data(), expected.data(), bytes);
  }
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_out));
  return rounds.finish();
}
