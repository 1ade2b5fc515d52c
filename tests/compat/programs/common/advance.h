// One kernel for programs that are about memory, streams and threads, and what it computes.
#pragma once

#include "work.h"

/// Each value becomes another one that depends on it, on its place and on `salt`.
static __global__ void advance(std::uint32_t* values, int count, int steps, std::uint32_t salt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = mix(values[i] + i + salt, steps);
}

inline void launch_advance(std::uint32_t* values, int count, int steps, std::uint32_t salt,
                           cudaStream_t stream = nullptr) {
  advance<<<(count + 255) / 256, 256, 0, stream>>>(values, count, steps, salt);
  CHECK(cudaGetLastError());
}

/// Checks every 97th value against the host, which does the same: `rounds` launches with salts 0, 1, 2 and so on, from
/// `start` everywhere.
inline void must_have_advanced(const char* what, const std::uint32_t* values, int count, int steps, int rounds,
                               std::uint32_t start = 0) {
  for (int i = 0; i < count; i += 97 * (1 + count / 10000)) {
    std::uint32_t value = start;
    for (int round = 0; round < rounds; ++round) value = mix(value + i + round, steps);
    must(values[i] == value, what);
  }
}
