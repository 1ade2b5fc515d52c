// What the FFT programs share: integer samples, and a way forward and back that leaves the integers.
#pragma once

#include <cufft.h>

#include <cmath>
#include <vector>

#include "check.h"

inline float sample_at(std::size_t i) {
  return static_cast<float>(static_cast<int>((i * 2654435761u >> 13) % 201) - 100);
}

inline std::vector<float> samples(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = sample_at(i);
  return values;
}

/// Prints whether `values`, scaled by 1 / `scale` and rounded, are the samples again, and a hash of what they are.
inline void print_samples(const char* name, const std::vector<float>& values, std::size_t scale,
                          std::size_t stride = 1) {
  std::vector<int> rounded;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    const int value = static_cast<int>(std::lround(values[i] / static_cast<float>(scale)));
    if (static_cast<float>(value) != sample_at(i / stride)) ++wrong;
    rounded.push_back(value);
  }
  std::printf("%s %s\n", name, wrong == 0 ? "right" : "WRONG");
  print_hash(name, rounded.data(), rounded.size() * sizeof(int));
}
