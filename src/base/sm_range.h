// How many SMs a client may use, and which of them one of its streams may use: the words that GPU workers poll.
//
// SMs are identified by %smid. Under MPS each client counts for itself the SMs on which it has blocks now. So only a
// number of SMs can be granted: "the SMs whose %smid is below n" are n SMs, but no particular ones.
#pragma once

#include <cstdint>

namespace gpuctl {

/// More than any GPU has. SMs beyond this are never granted.
inline constexpr std::uint32_t kMaxSms = 256;

/// In host memory, 16-byte aligned, so that a worker reads it in one access.
struct alignas(16) Polled {
  std::uint32_t capsm;  ///< how many SMs the client may use now; 0 = evict everything
  /// Ranges of these SMs, to which some streams are limited. The first entry limits nothing.
  struct alignas(2) Limit {  // written as one
    std::uint8_t first;
    std::uint8_t last;
  } limits[6];
};
static_assert(sizeof(Polled) == 16);
inline constexpr Polled::Limit kNoLimit{0, 255};

/// A range of SMs as workers keep it: the first in the lower half, the one after the last in the upper half. Never 0.
constexpr std::uint32_t pack_range(std::uint32_t capsm, Polled::Limit limit) {
  const std::uint32_t end = capsm < limit.last + 1u ? capsm : limit.last + 1u;
  return limit.first < end ? end << 16 | limit.first : 0xffff;
}
/// The number of SMs in the range.
constexpr std::uint32_t range_size(std::uint32_t range) {
  return range >> 16 > (range & 0xffff) ? (range >> 16) - (range & 0xffff) : 0;
}

}  // namespace gpuctl
