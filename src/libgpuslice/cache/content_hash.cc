#include "libgpuslice/cache/content_hash.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace gpuslice {

namespace {

// Odd numbers without a pattern.
constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kSecond = 0xd1b54a32d192ed03;

/// Every bit of the result depends on every bit of x.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

}  // namespace

ContentHash content_hash(std::string_view bytes, std::uint64_t domain) {
  std::uint64_t first = mix(domain + kFirst), second = mix(domain ^ kSecond);
  const auto take = [&](std::uint64_t word) {
    first = std::rotl((first ^ word) * kFirst, 29);
    second = (std::rotl(second, 37) + word) * kSecond;
    second ^= second >> 31;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    take(word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  take(rest);
  take(bytes.size());
  return {mix(first ^ std::rotl(second, 17)), mix(second + first), bytes.size()};
}

std::string to_text(const ContentHash& hash) {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.first),
                static_cast<unsigned long long>(hash.second));
  return digits;
}

}  // namespace gpuslice
