// compat: a kernel that writes where there is no memory: what each call after it returns, and the status
// soft: yes
#include "mix.h"

__global__ void wild(unsigned* at) {
  at[threadIdx.x] = 1;
}

int main() {
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, 1024 * sizeof(unsigned)));
  number_kernel<<<blocks_for(1024), 256>>>(data, 1024);
  for (unsigned round = 0; round < 20; ++round) launch_mix(data, 1024, round, 4);
  checked_results("before", data, 1024, 20, 4);
  wild<<<1, 32>>>(reinterpret_cast<unsigned*>(16));
  print_error("synchronize", cudaDeviceSynchronize());
  print_error("last", cudaGetLastError());
  unsigned* more = nullptr;
  print_error("malloc", cudaMalloc(&more, 1024));
  return 5;
}
