// A name for bytes by what they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuslice {

/// The 128 bits of XXH3, and the length. Different contents that come about by themselves do not share one; it is no
/// defence against somebody who looks for contents that do.
struct ContentHash {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t length = 0;  ///< bytes

  bool operator==(const ContentHash&) const = default;
};

/// `domain` separates what must not be taken for one another.
ContentHash content_hash(std::string_view bytes, std::uint64_t domain = 0);

/// 32 hexadecimal digits, for a file name.
std::string to_text(const ContentHash& hash);

}  // namespace gpuslice
