// The SMs that a client may be using although its grant does not name them any more: what a grant takes away is held
// until the client says that the shrink is applied.
#pragma once

#include <cstdint>

#include "base/sm_set.h"

namespace gpuctl::daemon {

/// Of one client on one device. Keeps the oldest shrink not known to be applied and the latest one, so a client that
/// is always one shrink behind is still seen to follow.
class HeldSms {
 public:
  /// The grant was changed from `before` to `after`, as its `epoch`-th.
  void wrote(const SmSet& before, const SmSet& after, std::uint32_t epoch, std::uint64_t now_ns);

  /// The client says it has applied the epoch `applied`; the grant stands at `epoch` with `written`. Epochs wrap; one
  /// that lies ahead was made up. True if a shrink was applied.
  bool heard(std::uint32_t applied, std::uint32_t epoch, const SmSet& written);

  /// The client has nothing outstanding: it uses nothing, whatever it has applied.
  void rest() { *this = {}; }

  /// Whether a shrink is not known to be applied, and when the oldest one was written.
  bool pending() const { return pending_; }
  std::uint64_t since_ns() const { return oldest_.ns; }

  /// What the client may be using; empty when nothing is pending, then it is what its grant says.
  const SmSet& sms() const { return held_; }

 private:
  struct Shrink {
    std::uint32_t epoch = 0;
    std::uint64_t ns = 0;
  };
  bool pending_ = false;
  Shrink oldest_, latest_;
  SmSet held_;   ///< everything granted from before the oldest shrink until now
  SmSet later_;  ///< everything granted from the oldest shrink until now
};

}  // namespace gpuctl::daemon
