// Random numbers that are the same on every machine. The standard library leaves its distributions to the
// implementation.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace gpuctl {

/// SplitMix64 (Steele, Lea and Flood, 2014): one word of state; any seed is good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// The same with 24 random bits, as many as a float holds.
  float uniform_float() { return static_cast<float>(bits() >> 40) * 0x1p-24f; }
  /// In [0, n), n > 0. The bias, below n / 2^64, does not matter here.
  std::uint64_t below(std::uint64_t n) { return bits() % n; }
  double exponential(double mean) { return -mean * std::log(1 - uniform()); }
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace gpuctl
