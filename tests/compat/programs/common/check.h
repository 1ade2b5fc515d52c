// What the programs of the compatibility suite share: a failed call ends the program with one line, and results are
// printed as one line each, so that two runs of a program can be compared by their output and exit status.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Ends the program with status 2 and one line on stderr if a CUDA runtime call fails.
#define CHECK(call)                                                                                       \
  do {                                                                                                    \
    const cudaError_t check_error_ = (call);                                                              \
    if (check_error_ != cudaSuccess) {                                                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(check_error_)); \
      std::exit(2);                                                                                       \
    }                                                                                                     \
  } while (0)

/// The same for a call of another interface that returns 0 when all is well (cuBLAS, cuFFT, NVRTC, the driver).
#define CHECK_ZERO(call)                                                                          \
  do {                                                                                            \
    const long long check_status_ = static_cast<long long>(call);                                 \
    if (check_status_ != 0) {                                                                     \
      std::fprintf(stderr, "%s:%d: %s: status %lld\n", __FILE__, __LINE__, #call, check_status_); \
      std::exit(2);                                                                               \
    }                                                                                             \
  } while (0)

/// FNV-1a over bytes.
inline std::uint64_t hash_of(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3;
  return hash;
}

/// One line: a name, and the hash of what was computed.
inline void print_hash(const char* name, const void* data, std::size_t bytes) {
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash_of(data, bytes)));
}
