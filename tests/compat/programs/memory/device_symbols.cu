// compat: __device__ variables by symbol: initialised ones, arrays, static pointers to each other
// soft: yes
#include "work.h"

__device__ unsigned long long counter = 1000;
__device__ std::uint32_t cells[512] = {1, 2, 3};
static __device__ std::uint32_t* pointer = cells + 5;
__device__ std::uint32_t* heap = nullptr;

__global__ void count_up(int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t value = mix(heap[i] + i, steps);
  heap[i] = value;
  atomicAdd(&counter, value);
  if (i < 500) pointer[i] ^= value;  // cells 5 to 504
}

int main() {
  const int count = work_threads(), steps = work_steps();
  std::uint32_t* memory = zeros<std::uint32_t>(count);
  CHECK(cudaMemcpyToSymbol(heap, &memory, sizeof memory));
  for (int round = 0; round < work_rounds(); ++round) count_up<<<(count + 255) / 256, 256>>>(count, steps);
  unsigned long long total = 0;
  std::vector<std::uint32_t> got(512), expected(512, 0);
  CHECK(cudaMemcpyFromSymbol(&total, counter, sizeof total));
  CHECK(cudaMemcpyFromSymbol(got.data(), cells, 512 * 4));
  expected[0] = 1, expected[1] = 2, expected[2] = 3;
  for (int i = 0; i < 500; ++i) {
    std::uint32_t value = 0;
    for (int round = 0; round < work_rounds(); ++round) expected[5 + i] ^= value = mix(value + i, steps);
  }
  must_equal("cells", got.data(), expected.data(), 512);
  std::printf("counter %llu\n", total);
  print_hash("cells", got.data(), 512 * 4);
  void *base = nullptr, *at = nullptr;
  CHECK(cudaGetSymbolAddress(&base, cells));
  CHECK(cudaMemcpyFromSymbol(&at, pointer, sizeof at));
  must(at == static_cast<std::uint32_t*>(base) + 5, "the static pointer points into cells");
}
