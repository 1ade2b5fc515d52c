// compat: the classic short program: one vector added to another
// soft: yes
#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) c[i] = a[i] + b[i];
}

int main() {
  constexpr int kCount = 50'000;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(3 * i % 1000);
  float *device_a = nullptr, *device_b = nullptr, *device_c = nullptr;
  CHECK(cudaMalloc(&device_a, kBytes));
  CHECK(cudaMalloc(&device_b, kBytes));
  CHECK(cudaMalloc(&device_c, kBytes));
  CHECK(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_b, b.data(), kBytes, cudaMemcpyHostToDevice));
  add<<<(kCount + 255) / 256, 256>>>(device_a, device_b, device_c, kCount);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), device_c, kBytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += c[i] != a[i] + b[i];
  std::printf("sum %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("sum", c.data(), kBytes);
  CHECK(cudaFree(device_a));
  CHECK(cudaFree(device_b));
  CHECK(cudaFree(device_c));
  return 0;
}
