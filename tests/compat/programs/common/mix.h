// A kernel whose result the host can compute: each element is mixed by itself, as long as `depth` says.
#pragma once

#include <cstring>
#include <vector>

#include "check.h"

__host__ __device__ inline unsigned mix(unsigned x, unsigned round, int depth) {
  for (int i = 0; i < depth; ++i) x = x * 1664525u + 1013904223u + (round ^ (x >> 13));
  return x;
}

__global__ void mix_kernel(unsigned* data, int count, unsigned round, int depth) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = mix(data[i], round, depth);
}

__global__ void number_kernel(unsigned* data, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = static_cast<unsigned>(i);
}

inline void print_error(const char* what, cudaError_t error) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::fflush(stdout);
}

inline int blocks_for(int count) {
  return (count + 255) / 256;
}

inline void launch_mix(unsigned* data, int count, unsigned round, int depth, cudaStream_t stream = nullptr) {
  mix_kernel<<<blocks_for(count), 256, 0, stream>>>(data, count, round, depth);
  CHECK(cudaGetLastError());
}

/// Whether this is the software GPU, which is given less to do.
inline bool on_software() {
  int device = 0;
  CHECK(cudaGetDevice(&device));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, device));
  return std::strstr(properties.name, "Software") != nullptr || std::strstr(properties.name, "software") != nullptr;
}

/// The results of `data`, after a check of some of them: element i was i, and has been mixed with rounds 0 to `rounds`.
inline std::vector<unsigned> checked_results(const char* name, const unsigned* data, int count, unsigned rounds,
                                             int depth) {
  std::vector<unsigned> got(static_cast<std::size_t>(count));
  CHECK(cudaMemcpy(got.data(), data, got.size() * sizeof(unsigned), cudaMemcpyDefault));
  int wrong = 0;
  const int step = count > 61 ? count / 61 : 1;
  for (int i = 0; i < count; i += step) {
    unsigned x = static_cast<unsigned>(i);
    for (unsigned round = 0; round < rounds; ++round) x = mix(x, round, depth);
    if (got[static_cast<std::size_t>(i)] != x) ++wrong;
  }
  std::printf("%s %s\n", name, wrong == 0 ? "right" : "WRONG");
  print_hash(name, got.data(), got.size() * sizeof(unsigned));
  return got;
}
