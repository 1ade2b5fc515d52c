// compat: copies within the device and to itself as a peer, by the default kind, and what the device says of its memory
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  std::size_t free = 0, total = 0, later = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  must(free > 0 && free <= total, "some memory is free");
  std::uint32_t *a = zeros<std::uint32_t>(count), *b = zeros<std::uint32_t>(count), *c = zeros<std::uint32_t>(count);
  for (int round = 0; round < rounds; ++round) {
    launch_advance(a, count, steps, round);
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyPeerAsync(c, 0, b, 0, bytes, nullptr));
    CHECK(cudaMemcpyAsync(a, c, bytes, cudaMemcpyDefault));
  }
  must_have_advanced("copies", on_host(a, count).data(), count, steps, rounds);
  print_device_hash("copies", c, count);
  std::size_t again = 0;
  CHECK(cudaMemGetInfo(&later, &again));
  std::printf("the total stays: %d\n", again == total);
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, b));
  std::printf("type %d device %d\n", static_cast<int>(attributes.type), attributes.device);
}
