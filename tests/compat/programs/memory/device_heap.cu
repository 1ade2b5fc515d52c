// compat: new, delete, malloc and free in kernels, and memory that outlives its kernel
#include "work.h"

struct Node {
  std::uint32_t value;
  Node* next;
};

__global__ void lists(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Node* head = nullptr;
  for (int k = 0; k < 4; ++k) head = new Node{mix(values[i] + i + k, steps / 4), head};
  std::uint32_t sum = 0;
  while (head != nullptr) {
    Node* next = head->next;
    sum = sum * 31 + head->value;
    delete head;
    head = next;
  }
  values[i] = sum;
}

__global__ void make(std::uint32_t** kept, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  kept[i] = static_cast<std::uint32_t*>(malloc(16));
  for (int k = 0; k < 4; ++k) kept[i][k] = i * 4 + k;
}

__global__ void take(std::uint32_t** kept, std::uint32_t* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (int k = 0; k < 4; ++k) values[i] = values[i] * 7 + kept[i][k];
  free(kept[i]);
}

int main() {
  const int count = scaled(1 << 13, 1 << 7), rounds = scaled(30, 2);
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  std::size_t limit = 0;
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  must(limit >= 64 << 20, "the heap is as large as was asked for");
  std::uint32_t* values = zeros<std::uint32_t>(count);
  std::uint32_t** kept = zeros<std::uint32_t*>(count);
  for (int round = 0; round < rounds; ++round) {
    lists<<<(count + 63) / 64, 64>>>(values, count, work_steps());
    make<<<(count + 63) / 64, 64>>>(kept, count);
    take<<<(count + 63) / 64, 64>>>(kept, values, count);
  }
  CHECK(cudaGetLastError());
  print_device_hash("heap", values, count);
}
