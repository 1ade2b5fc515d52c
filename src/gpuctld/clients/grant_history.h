// How many SMs a client was granted, and when. So what a launch had while it ran is known when it has ended, without a
// report of the client.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace gpuctl::daemon {

class GrantHistory {
 public:
  /// From now on the client has `capsm`. Instants never fall.
  void wrote(std::uint32_t capsm, std::uint64_t now_ns);

  struct Held {
    double capsm = 0;                   ///< the mean over the time in which it had any
    std::uint64_t ns = 0;               ///< that time
    std::uint32_t least = 0, most = 0;  ///< over that time
  };
  /// Between two instants, for a launch that can use at most `usable`. Empty if it had none, or if that is so long ago
  /// that it was forgotten.
  std::optional<Held> held(std::uint64_t from_ns, std::uint64_t to_ns, std::uint32_t usable) const;

 private:
  struct Change {
    std::uint64_t ns = 0;
    std::uint32_t capsm = 0;
  };
  std::array<Change, 64> changes_;  ///< a ring
  std::uint64_t count_ = 0;         ///< changes so far
};

}  // namespace gpuctl::daemon
