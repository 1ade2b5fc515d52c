// When the agent asks the driver again whether launches in original form are over. Nothing else tells of their end.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread. A look costs 1 us; waking up for it costs more.
class OpaquePace {
 public:
  static constexpr std::uint64_t kUsualNs = 500'000, kShortestNs = 50'000;

  /// What a look showed: SMs that the launches could fill, and those of them that do not wait for a grant.
  struct Seen {
    std::uint32_t epoch = 0;  ///< of the grant
    std::uint32_t demand = 0;
    std::uint32_t running = 0;
    std::uint64_t oldest_ns = 0;  ///< when the oldest was launched
    bool operator==(const Seen&) const = default;
  };

  /// How long from now until the next look. `epoch`: of the grant now; with a new one launches begin, so that it is
  /// time for a look.
  std::uint64_t left_ns(std::uint64_t now_ns, std::uint32_t epoch) const {
    return epoch != seen_.epoch || now_ns >= next_ns_ ? 0 : next_ns_ - now_ns;
  }

  /// `others_wait`: another program gets the GPU when each of these launches is over. Then the next look comes after an
  /// eighth of the time for which all has been as it is now, so that the end is seen late by an eighth of how long the
  /// launch ran.
  void looked(std::uint64_t now_ns, const Seen& seen, bool others_wait) {
    if (seen != seen_) since_ns_ = now_ns;
    seen_ = seen;
    next_ns_ = now_ns + (others_wait ? std::clamp((now_ns - since_ns_) / 8, kShortestNs, kUsualNs) : kUsualNs);
  }

 private:
  Seen seen_;
  std::uint64_t since_ns_ = 0;  ///< so it has been seen since
  std::uint64_t next_ns_ = 0;
};

}  // namespace gpuslice
