// compat: the shortest program: one vector addition at a time; its start and end are most of it
// soft: yes
// args:
// args: 40
#include "check.h"

#include <vector>

__global__ void add(const int* a, const int* b, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] += a[i] * b[i];
}

/// vector_add_tiny [ROUNDS]
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  constexpr int kCount = 10'000;
  std::vector<int> a(kCount), b(kCount), out(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = i, b[i] = i % 7;
  int* device[3];
  for (int*& each : device) CHECK(cudaMalloc(&each, kCount * sizeof(int)));
  CHECK(cudaMemcpy(device[0], a.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device[1], b.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(device[2], 0, kCount * sizeof(int)));
  for (int round = 0; round < rounds; ++round)
    add<<<(kCount + 255) / 256, 256>>>(device[0], device[1], device[2], kCount);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), device[2], kCount * sizeof(int), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += out[i] != rounds * a[i] * b[i];
  std::printf("rounds %d, wrong %d\n", rounds, wrong);
  print_hash("sums", out.data(), kCount * sizeof(int));
  return wrong != 0;
}
