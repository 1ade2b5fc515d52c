// What one program uses of one GPU, from what its page counts and from what the daemon knows of its SMs. Pure; time is
// an argument.
//
// For how long it works is what its bursts take (docs/design/bursts.md): they are measured in the program, to the
// nanosecond, in every mode. How many SMs it has meanwhile is seen here at each look. So a burst counts when it has
// ended, with the mean of the SMs seen since the one before. A program of which no burst ends for kLong works as long
// as it has demand.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "gpuctld/accounts/amounts.h"

namespace gpuctl::daemon {

class WorkMeter {
 public:
  /// What the page counts. It may say anything.
  struct Counted {
    std::uint64_t bursts = 0;
    std::uint64_t burst_ns = 0;
    std::uint64_t launches = 0;
    std::uint64_t evictions = 0;
  };
  /// At a look. An interval counts as work if it begins with some: between two looks at an idle program it may be long.
  struct Seen {
    bool works = false;        ///< it has work there, as far as is known
    bool waits = false;        ///< and fewer SMs than it could fill
    double sms = 0;            ///< that it has, or would have if it worked
    std::uint64_t memory = 0;  ///< bytes that it holds
  };
  static constexpr std::chrono::nanoseconds kLong = std::chrono::seconds{10};
  static constexpr std::chrono::nanoseconds kIdle = std::chrono::milliseconds{200};

  /// Whether it is to be looked at though it has no work: it had, or that was not done for long. So who is idle costs
  /// next to nothing.
  bool due(std::uint64_t now_ns) const {
    return looked_ns_ == 0 || seen_.works || now_ns >= looked_ns_ + static_cast<std::uint64_t>(kIdle.count());
  }
  void look(const Counted& counted, const Seen& seen, std::uint64_t now_ns);
  /// The program is gone, or what it uses is another slice's from now on: a burst that goes on counts as far as it was
  /// seen.
  void settle(bool in_burst);

  /// What was used since the last call.
  Amounts take() { return std::exchange(used_, {}); }
  const Amounts& used() const { return used_; }
  /// SM seconds in all, with what is seen of the burst that goes on. What was seen too long is taken back when it ends.
  double sm_s() const { return sm_s_ + sm_ns_ / 1e9; }

 private:
  void count_work(std::uint64_t ns);

  Amounts used_;
  Counted counted_;
  Seen seen_;                                   ///< at the latest look
  std::uint64_t begun_ns_ = 0, looked_ns_ = 0;  ///< 0: not looked yet
  std::uint64_t charged_ns_ = 0;                ///< work since begun_ns_
  std::uint64_t ahead_ns_ = 0;                  ///< of these, what no burst that ended has taken yet
  // Since work was last counted: for how long it was seen at work, the same times its SMs, and for how long it waited.
  std::uint64_t works_ns_ = 0, waits_ns_ = 0;
  double sm_ns_ = 0;
  double sm_s_ = 0;  ///< counted so far
  double sms_ = 0;   ///< the latest mean, or what it has
};

}  // namespace gpuctl::daemon
