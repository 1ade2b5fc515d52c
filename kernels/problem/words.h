// Floats as the words in which problems hold them, and back.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

inline std::vector<float> as_floats(const Words& words) {
  std::vector<float> floats(words.size());
  if (!words.empty()) std::memcpy(floats.data(), words.data(), words.size() * sizeof(float));
  return floats;
}

inline Words as_words(const std::vector<float>& floats) {
  Words words(floats.size());
  if (!floats.empty()) std::memcpy(words.data(), floats.data(), floats.size() * sizeof(float));
  return words;
}

}  // namespace gpuctl::bench
