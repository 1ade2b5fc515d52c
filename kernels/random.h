// Inputs that are the same on every machine for the same seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "problem.h"

namespace gpuctl::bench {

/// A Weyl sequence with a mixing function: 64 good bits a step, any seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
    return z ^ (z >> 32);
  }

  /// A float in [0, 1) with 24 random bits.
  float next_float() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

  /// A number in (0, 1].
  double next_positive() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// `count` floats in [0, 1), as bits.
inline Words random_floats(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(random.next_float());
  return words;
}

/// `count` words of random bits.
inline Words random_words(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random.next() >> 32);
  return words;
}

}  // namespace gpuctl::bench
