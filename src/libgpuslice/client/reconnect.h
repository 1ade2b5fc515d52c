// When the client tries again to attach, after gpuctld went away or refused it. Pauses grow, so that a program without
// a daemon, or with one of another version, costs nothing. A program that holds a grant keeps them short as long as
// nobody answers: the next daemon keeps its SMs for it for a few seconds only, and under systemd the socket file does
// not tell when that daemon comes. Clients of one machine try at different times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"
#include "ipc/stub.h"

namespace gpuslice {

/// For one thread. Time is an argument.
class Reconnect {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kShortest{200}, kLongest{30'000}, kLongestHolding{1000};
  static_assert(2 * kLongestHolding < gpuctl::ipc::kGrace, "with a second for looking and for the answer");

  /// `seed` differs from process to process.
  explicit Reconnect(std::uint64_t seed) : random_(seed) {}

  /// Names the socket file that is there: its device, inode and time of change. All 0: there is none.
  struct Socket {
    std::uint64_t device = 0, inode = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Socket&) const = default;
  };

  /// Whether to try now. A socket file that was not there at the last failure is tried at once: a daemon has started.
  bool due(Time now, const Socket& socket) const { return now >= next_ || (socket != seen_ && socket != Socket{}); }

  enum class Why {
    no_daemon,           ///< none has answered, or the connection was found lost
    no_daemon_for_held,  ///< the same, and the program holds a grant
    refused,             ///< a daemon has answered, and the next answer will be the same
  };

  /// The try at `now` failed. The pause after that is twice as long, each less a random part of up to a half.
  void failed(Time now, const Socket& socket, Why why) {
    if (why == Why::no_daemon_for_held) pause_ = std::min(pause_, kLongestHolding);
    const auto part = std::chrono::duration<double, std::milli>(pause_) * (1 - random_.uniform() / 2);
    next_ = now + std::chrono::duration_cast<std::chrono::milliseconds>(part);
    pause_ = std::min(pause_ * 2, kLongest);
    seen_ = socket;
  }

  /// A try succeeded.
  void attached() { pause_ = kShortest; }

 private:
  gpuctl::Random random_;
  std::chrono::milliseconds pause_ = kShortest;
  Time next_{};
  Socket seen_;
};

}  // namespace gpuslice
