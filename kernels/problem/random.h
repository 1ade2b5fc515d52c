// Inputs that are the same on every machine for the same seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// `count` floats in [0, 1), as bits.
inline Words random_floats(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = std::bit_cast<std::uint32_t>(random.uniform_float());
  return words;
}

/// `count` words of random bits.
inline Words random_words(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Words words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random.bits() >> 32);
  return words;
}

}  // namespace gpuctl::bench
