// How many SMs a client may use, and which of them one of its streams: the words that GPU workers poll.
//
// SMs are told apart by %smid. Under MPS that counts, for each client by itself, the SMs on which the client has blocks
// now, so a number of SMs is all that can be granted: "the SMs whose %smid is below n" are n SMs, whichever.
#pragma once

#include <cstdint>

namespace gpuctl {

/// More than any GPU has. SMs beyond are granted to nobody.
inline constexpr std::uint32_t kMaxSms = 256;

/// In host memory, 16-byte aligned, so that a worker reads it in one go.
struct alignas(16) Polled {
  std::uint32_t capsm;  ///< how many SMs the client may use now; 0 = evict everything
  /// Of these, the range that some streams are limited to. The first entry limits nothing.
  struct Limit {
    std::uint8_t first;
    std::uint8_t last;
  } limits[6];
};
static_assert(sizeof(Polled) == 16);
inline constexpr Polled::Limit kNoLimit{0, 255};

/// A range of SMs as workers keep it: the first in the lower half, the one after the last in the upper. Never 0.
constexpr std::uint32_t pack_range(std::uint32_t capsm, Polled::Limit limit) {
  const std::uint32_t end = capsm < limit.last + 1u ? capsm : limit.last + 1u;
  return limit.first < end ? end << 16 | limit.first : 0xffff;
}
/// How many SMs are in it.
constexpr std::uint32_t range_size(std::uint32_t range) {
  return range >> 16 > (range & 0xffff) ? (range >> 16) - (range & 0xffff) : 0;
}

}  // namespace gpuctl
