// When the daemon looks at its clients again. Pure: times are arguments.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "gpuctld/budgets/token_bucket.h"

namespace gpuctl::daemon {

/// While any client is busy, usage is read this often, and whenever a client asks. What a client no longer needs is
/// found this late at most.
inline constexpr std::chrono::milliseconds kBusyTick{5};
/// The tick while SMs taken from one client wait to be granted to another. A waiting client may lose this much beyond
/// the time that the other takes to leave.
inline constexpr std::chrono::microseconds kHandoverTick{200};
/// The tick while clients are attached and idle: for what gpuctl top shows, and for work that began under a standing
/// grant.
inline constexpr std::chrono::milliseconds kIdleTick{250};

/// From a look to the next, where looks have taken too much lately: also for who asks then.
inline constexpr std::chrono::milliseconds kCrowdedTick{1};

/// To look at a thousand clients takes long. While nothing changes no more than a hundredth of a core is spent on it,
/// while something does a tenth. Nobody pays for it: it may be anybody's demand, and one look serves all who ask. In a
/// handover, and where a client asks, the daemon looks at once, until that has taken a tenth of a core for a while.
class TickPace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// The daemon looked, and that took so long.
  void looked(bool changed, Duration took, std::uint64_t now_ns) {
    changed_ = changed;
    took_ = took;
    looked_ns_ = now_ns;
    looks_.charge(std::chrono::duration<double>(took).count(), now_ns);
  }

  Duration wait(bool handover, bool busy, std::uint64_t now_ns) const {
    if (handover) return std::max(std::clamp<Duration>(took_, kHandoverTick, kBusyTick), rest(now_ns));
    if (!busy) return kIdleTick;
    return std::clamp<Duration>((changed_ ? 10 : 100) * took_, kBusyTick, kIdleTick);
  }

  /// How long who asks has to wait; 0: not at all.
  Duration rest(std::uint64_t now_ns) const {
    if (looks_.wait(now_ns).count() == 0) return {};
    const auto since = Duration(now_ns - std::min(looked_ns_, now_ns));
    return std::max(Duration(), std::clamp<Duration>(10 * took_, kCrowdedTick, kBusyTick) - since);
  }

 private:
  bool changed_ = true;
  Duration took_{};
  std::uint64_t looked_ns_ = 0;
  TokenBucket looks_{{.per_second = 0.1, .burst = 0.1}};  ///< in seconds of the processor
};

}  // namespace gpuctl::daemon
