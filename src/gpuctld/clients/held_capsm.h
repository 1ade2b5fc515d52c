// How many SMs a client may be using although its grant is smaller now. What a grant takes away counts as held until
// the client reports that the shrink is applied.
#pragma once

#include <cstdint>

namespace gpuctl::daemon {

/// For one client on one device. Keeps the oldest shrink not known to be applied, and the latest one, so a client that
/// is always one shrink behind is still seen to follow.
class HeldCapsm {
 public:
  /// The grant changed from `before` to `after`; this was change number `epoch`.
  void wrote(std::uint32_t before, std::uint32_t after, std::uint32_t epoch, std::uint64_t now_ns);

  /// The client reports that epoch `applied` is applied. The grant is at `epoch` with `written`. Epochs wrap; an
  /// `applied` ahead of `epoch` is invented and ignored. True if a shrink was applied.
  bool heard(std::uint32_t applied, std::uint32_t epoch, std::uint32_t written);

  /// The client has nothing outstanding, so it uses nothing, whatever it has applied.
  void rest() { *this = {}; }

  /// Whether a shrink is not known to be applied, and when the oldest one was written.
  bool pending() const { return pending_; }
  std::uint64_t since_ns() const { return oldest_.ns; }

  /// The most that the client may be using. 0 if nothing is pending; then it is what its grant says.
  std::uint32_t most() const { return held_; }

 private:
  struct Shrink {
    std::uint32_t epoch = 0;
    std::uint64_t ns = 0;
  };
  bool pending_ = false;
  Shrink oldest_, latest_;
  std::uint32_t held_ = 0;   ///< the most granted from before the oldest shrink until now
  std::uint32_t later_ = 0;  ///< the most granted from the oldest shrink until now
};

}  // namespace gpuctl::daemon
