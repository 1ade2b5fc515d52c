// compat: cudaStreamAddCallback between kernels, in order, with the status
// soft: yes
#include "advance.h"

std::vector<int> order;
std::uint32_t* seen = nullptr;

void called(cudaStream_t, cudaError_t status, void* number) {
  if (status == cudaSuccess) order.push_back(static_cast<int>(reinterpret_cast<std::intptr_t>(number)));
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocHost(&seen, rounds * sizeof(std::uint32_t)));
  std::uint32_t* values = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    launch_advance(values, count, steps, round, stream);
    CHECK(cudaMemcpyAsync(&seen[round], values, sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamAddCallback(stream, called, reinterpret_cast<void*>(static_cast<std::intptr_t>(round)), 0));
  }
  CHECK(cudaStreamSynchronize(stream));
  must(static_cast<int>(order.size()) == rounds, "each callback was called");
  std::uint32_t value = 0;
  for (int round = 0; round < rounds; ++round) {
    must(order[round] == round, "the callbacks came in order");
    must(seen[round] == (value = mix(value + round, steps)), "the value after each kernel");
  }
  must_have_advanced("values", on_host(values, count).data(), count, steps, rounds);
  print_device_hash("values", values, count);
}
