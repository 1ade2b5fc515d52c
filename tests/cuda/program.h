// What the ordinary CUDA programs beside this file share: error checks, inputs, and the closing report.
// NAME [ROUNDS [SCALE]]: runs the kernel ROUNDS times (20) on inputs SCALE times the usual size (1), compares every
// result with the CPU's, and ends with one line: "NAME: R rounds, M wrong, T us a round, hash H", H being that of the
// last result. SIGTERM ends it early. Exit status 0, or 3 when a result was wrong.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CUDA_CHECK(call)                                                                              \
  do {                                                                                                \
    const cudaError_t status = (call);                                                                \
    if (status != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

/// Whole numbers below 16 as floats: sums of a few thousand products of them are exact in any order.
inline std::vector<float> small_numbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> numbers(count);
  std::uint32_t state = seed;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 28);
  }
  return numbers;
}

class Rounds {
 public:
  Rounds(const char* name, int argc, char** argv)
      : name_(name), rounds_(argc > 1 ? std::atoi(argv[1]) : 20), scale_(argc > 2 ? std::atoi(argv[2]) : 1) {
    std::signal(SIGTERM, [](int) { stopped = 1; });
  }

  int scale() const { return scale_; }

  /// Whether there is another round; its number is round(). The clock starts with the first.
  bool next() {
    if (round_ < 0) start_ = std::chrono::steady_clock::now();
    if (round_ + 1 >= rounds_ || stopped) return false;
    ++round_;
    return true;
  }
  int round() const { return round_; }

  void compare(const void* found, const void* expected, std::size_t bytes) {
    if (std::memcmp(found, expected, bytes) != 0) ++wrong_;
    const auto* first = static_cast<const unsigned char*>(found);
    last_.assign(first, first + bytes);
  }

  /// Prints the report; the exit status of the program.
  int finish() const {
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start_;
    const int rounds = round_ + 1;
    std::uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : last_) hash = (hash ^ byte) * 0x100000001b3;
    std::printf("%s: %d rounds, %d wrong, %.1f us a round, hash %016llx\n", name_, rounds, wrong_,
                all.count() / (rounds > 0 ? rounds : 1), static_cast<unsigned long long>(hash));
    return wrong_ == 0 ? 0 : 3;
  }

 private:
  static inline volatile std::sig_atomic_t stopped = 0;

  const char* name_;
  int rounds_;
  int scale_;
  int round_ = -1;
  int wrong_ = 0;
  std::vector<unsigned char> last_;  ///< the latest result; hashed at the end: that takes as long as a small kernel
  std::chrono::steady_clock::time_point start_;
};
