// compat: a kernel that traps after some good launches
// soft: yes
#include "check.h"
__global__ void count(int* sum, int limit) {
  if (atomicAdd(sum, 1) > limit) __trap();
}
int main() {
  int* sum;
  CHECK(cudaMalloc(&sum, sizeof(int)));
  CHECK(cudaMemset(sum, 0, sizeof(int)));
  count<<<10, 32>>>(sum, 1000000);
  CHECK(cudaDeviceSynchronize());
  std::printf("first\n");
  count<<<10, 32>>>(sum, 400);
  CHECK(cudaDeviceSynchronize());
}
