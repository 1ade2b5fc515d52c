// What the ordinary CUDA programs beside this file share: error checks, inputs, and the closing report.
// A program runs its kernel `rounds` times (first argument, default 20), compares every result with the CPU's, and ends
// with one line: "NAME: R rounds, M wrong, T us a round, hash H". Exit status 0, or 3 when a result was wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                              \
  do {                                                                                                \
    const cudaError_t status = (call);                                                                \
    if (status != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

inline int rounds_from(int argc, char** argv) {
  return argc > 1 ? std::atoi(argv[1]) : 20;
}

/// Whole numbers below 1024 as floats: sums and products of a few thousand of them are exact in any order.
inline std::vector<float> small_numbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> numbers(count);
  std::uint32_t state = seed;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 22);
  }
  return numbers;
}

class Rounds {
 public:
  Rounds(const char* name, int rounds) : name_(name), rounds_(rounds) {}

  void compare(const void* found, const void* expected, std::size_t bytes) {
    const auto* a = static_cast<const unsigned char*>(found);
    const auto* b = static_cast<const unsigned char*>(expected);
    bool same = true;
    for (std::size_t i = 0; i < bytes; ++i) {
      same = same && a[i] == b[i];
      hash_ = (hash_ ^ a[i]) * 0x100000001b3;
    }
    wrong_ += same ? 0 : 1;
  }

  /// Prints the report; the exit status of the program.
  int finish() const {
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start_;
    std::printf("%s: %d rounds, %d wrong, %.1f us a round, hash %016llx\n", name_, rounds_, wrong_,
                all.count() / rounds_, static_cast<unsigned long long>(hash_));
    return wrong_ == 0 ? 0 : 3;
  }

 private:
  const char* name_;
  int rounds_;
  int wrong_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
