// Numbers for the sorts, scans and selections: the same on the host and on the device.
#pragma once

#include <vector>

#include "check.h"

__host__ __device__ inline unsigned key_at(unsigned i) {
  unsigned x = i * 2654435761u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  return x ^ (x >> 13);
}

inline std::vector<unsigned> keys(std::size_t count, unsigned below = 0) {
  std::vector<unsigned> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = below ? key_at(static_cast<unsigned>(i)) % below : key_at(static_cast<unsigned>(i));
  return made;
}

template <typename T>
T* upload(const std::vector<T>& host) {
  T* device = nullptr;
  CHECK(cudaMalloc(&device, (host.size() + 1) * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

template <typename T>
std::vector<T> download(const T* device, std::size_t count) {
  std::vector<T> host(count);
  CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

/// Prints whether what was got is what was wanted, and its hash.
template <typename T>
void compare(const char* name, const std::vector<T>& got, const std::vector<T>& wanted) {
  std::printf("%s %zu %s\n", name, got.size(), got == wanted ? "right" : "WRONG");
  print_hash(name, got.data(), got.size() * sizeof(T));
}
