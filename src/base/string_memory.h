// The memory that a string has taken, where texts of others may be long.
#pragma once

#include <cstddef>
#include <string>

namespace gpuctl {

/// Bytes on the heap, also those that the text no longer fills.
inline std::size_t memory_of(const std::string& text) {
  const std::size_t within = std::string().capacity();
  return text.capacity() > within ? text.capacity() + 1 : 0;
}

/// Empties the string and gives its memory back. To assign an empty string would keep the memory.
inline void give_back(std::string& text) {
  std::string().swap(text);
}

}  // namespace gpuctl
