// When the daemon looks at its clients again. Pure: times are arguments.
#pragma once

#include <algorithm>
#include <chrono>

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

/// To look at a thousand clients takes long. While nothing changes no more than a hundredth of a core is spent on it,
/// while something does a tenth, and in a handover half of one. Nobody pays for it: it may be anybody's demand.
class TickPace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// The daemon looked, and that took so long.
  void looked(bool changed, Duration took) {
    changed_ = changed;
    took_ = took;
  }

  /// No look for the sake of a quota comes sooner than this after another: users set quotas, with periods as they like.
  Duration least() const { return 10 * took_; }

  Duration wait(bool handover, bool busy) const {
    if (handover) return std::clamp<Duration>(took_, kHandoverTick, kBusyTick);
    if (!busy) return kIdleTick;
    return std::clamp<Duration>((changed_ ? 10 : 100) * took_, kBusyTick, kIdleTick);
  }

 private:
  bool changed_ = true;
  Duration took_{};
};

}  // namespace gpuctl::daemon
