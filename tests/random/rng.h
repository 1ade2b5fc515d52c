// Random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/random.h"

namespace gpuctl::random_kernels {

/// Numbers as a generator of programs needs them.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_.bits(); }
  /// 0 to n - 1; n is at least 1.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((random_.bits() >> 32) * n >> 32); }
  /// Both bounds included.
  std::uint32_t between(std::uint32_t least, std::uint32_t most) { return least + below(most - least + 1); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }

 private:
  Random random_;
};

}  // namespace gpuctl::random_kernels
