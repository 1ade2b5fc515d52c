// Identifies bytes by their content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuslice {

/// The 128 bits of XXH3, and the length. Different contents do not share one by chance. It does not protect against
/// deliberate collisions.
struct ContentHash {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t length = 0;  ///< bytes

  bool operator==(const ContentHash&) const = default;
};

/// `domain` keeps contents of different kinds apart.
ContentHash content_hash(std::string_view bytes, std::uint64_t domain = 0);

/// 32 hexadecimal digits, for a file name.
std::string to_text(const ContentHash& hash);

}  // namespace gpuslice
