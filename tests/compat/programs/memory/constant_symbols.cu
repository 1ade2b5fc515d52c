// compat: __constant__ variables by symbol, changed between launches, whole and in part
// soft: yes
#include "work.h"

__constant__ std::uint32_t table[256];
__constant__ struct {
  int a;
  float b;
} pair = {3, 0.5f};

__global__ void look_up(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    values[i] = mix(values[i] ^ table[(i + values[i]) % 256], steps) + pair.a + static_cast<int>(pair.b * 2);
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  std::vector<std::uint32_t> expected(100, 0), host_table(256);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 256; ++k) host_table[k] = mix(round * 256 + k, 3);
    CHECK(cudaMemcpyToSymbol(table, host_table.data(), 128 * 4));
    CHECK(cudaMemcpyToSymbolAsync(table, host_table.data() + 128, 128 * 4, 128 * 4, cudaMemcpyHostToDevice));
    look_up<<<(count + 255) / 256, 256>>>(values, count, steps);
    for (int i = 0; i < 100; ++i) expected[i] = mix(expected[i] ^ host_table[(i + expected[i]) % 256], steps) + 4;
  }
  must_equal("values", on_host(values, 100).data(), expected.data(), 100);
  print_device_hash("values", values, count);
  void* address = nullptr;
  std::size_t size = 0;
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&size, table));
  std::printf("size %zu\n", size);
  std::vector<std::uint32_t> back(256), by_symbol(256);
  CHECK(cudaMemcpy(back.data(), address, size, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyFromSymbol(by_symbol.data(), table, size));
  must_equal("by address", back.data(), host_table.data(), 256);
  must_equal("by symbol", by_symbol.data(), host_table.data(), 256);
}
