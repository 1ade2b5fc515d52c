// compat: host memory of the program's own that it registers and unregisters
// soft: yes
#include "advance.h"

int main() {
  const int count = scaled(1 << 17, 1 << 11), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  for (int turn = 0; turn < 3; ++turn) {
    auto* host = static_cast<std::uint32_t*>(std::aligned_alloc(4096, bytes));
    for (int i = 0; i < count; ++i) host[i] = turn;
    CHECK(cudaHostRegister(host, bytes, turn == 0 ? cudaHostRegisterDefault : cudaHostRegisterMapped));
    std::uint32_t *mapped = nullptr, *device = zeros<std::uint32_t>(count);
    CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
    CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice));
    for (int round = 0; round < rounds; ++round) launch_advance(turn == 2 ? mapped : device, count, steps, round);
    if (turn != 2) CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    must_have_advanced("registered", host, count, steps, rounds, turn);
    CHECK(cudaHostUnregister(host));
    print_hash("registered", host, bytes);
    CHECK(cudaFree(device));
    std::free(host);
  }
}
