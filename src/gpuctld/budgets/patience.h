// How long the daemon waits for the other end of a connection. Pure: time is an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpuctl::daemon {

/// What a connection waits for. The daemon's own work is no reason to close it.
enum class Awaits {
  nothing,       ///< it is served, or an attached client's, or streams
  call,          ///< no call has begun
  rest_of_call,  ///< a part of a call has arrived
  reader,        ///< the peer has not taken a whole reply yet
};

/// A person at a prompt of a Varlink tool, and no longer.
inline constexpr std::chrono::seconds kPatienceForCall{60};
/// A message takes microseconds to send and to read; a program may be stopped in between.
inline constexpr std::chrono::seconds kPatienceWithinMessage{30};

class Patience {
 public:
  /// Tells it what the connection waits for now. Another part of the same message gives no more time.
  void note(Awaits awaits, std::uint64_t now_ns) {
    if (awaits == awaits_) return;
    awaits_ = awaits;
    since_ns_ = now_ns;
  }

  bool over(std::uint64_t now_ns) const {
    if (awaits_ == Awaits::nothing) return false;
    const std::chrono::nanoseconds limit = awaits_ == Awaits::call ? kPatienceForCall : kPatienceWithinMessage;
    return now_ns >= since_ns_ + static_cast<std::uint64_t>(limit.count());
  }

 private:
  Awaits awaits_ = Awaits::nothing;
  std::uint64_t since_ns_ = 0;
};

}  // namespace gpuctl::daemon
