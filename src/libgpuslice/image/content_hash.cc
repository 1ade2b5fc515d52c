#include "libgpuslice/image/content_hash.h"

#include <cstdio>

// The functions become part of this file, so that the library adds no other library to programs.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gpuslice {

ContentHash content_hash(std::string_view bytes, std::uint64_t domain) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), domain);
  return {hash.high64, hash.low64, bytes.size()};
}

std::string to_text(const ContentHash& hash) {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.first),
                static_cast<unsigned long long>(hash.second));
  return digits;
}

}  // namespace gpuslice
