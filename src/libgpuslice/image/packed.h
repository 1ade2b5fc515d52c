// Converts numbers and texts to bytes and back, for data that one process of a user writes and another reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gpuslice {

struct Packer {
  std::string bytes;

  void number(std::uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view text) {
    number(text.size());
    bytes += text;
  }
};

/// After the first value that is missing, all values are zero or empty, and `whole` is false.
struct Unpacker {
  std::string_view bytes;
  bool whole = true;

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes.size() < sizeof value) {
      whole = false;
      bytes = {};
      return 0;
    }
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > bytes.size()) whole = false;
    const std::string_view text = bytes.substr(0, size);
    bytes.remove_prefix(text.size());
    return std::string(text);
  }
};

}  // namespace gpuslice
