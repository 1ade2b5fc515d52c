// A budget over time: so many tokens come back each second, and no more than `burst` are saved. What something costs
// may be known only afterwards, so a charge may leave a debt. Who is in debt waits until it is paid; what is done all
// the same adds to it, but nobody waits longer than kMostOwed. Pure: time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpuctl::daemon {

/// Not all can be made to wait: who connects is charged whether it owes something or not.
inline constexpr std::chrono::seconds kMostOwed{5};

class TokenBucket {
 public:
  struct Rate {
    double per_second = 0, burst = 0;
  };

  explicit TokenBucket(Rate rate) : rate_(rate), tokens_(rate.burst) {}

  void charge(double tokens, std::uint64_t now_ns) {
    tokens_ = std::max(at(now_ns) - tokens, -rate_.per_second * static_cast<double>(kMostOwed.count()));
    since_ns_ = now_ns;
  }

  /// How long until the debt is paid; 0: there is none.
  std::chrono::nanoseconds wait(std::uint64_t now_ns) const {
    const double debt = -at(now_ns);
    return std::chrono::nanoseconds(debt <= 0 ? 0 : static_cast<std::int64_t>(debt / rate_.per_second * 1e9) + 1);
  }

  /// Whether all tokens are there, so that nothing is lost with the bucket.
  bool full(std::uint64_t now_ns) const { return at(now_ns) >= rate_.burst; }

 private:
  double at(std::uint64_t now_ns) const {
    const double seconds = now_ns > since_ns_ ? static_cast<double>(now_ns - since_ns_) / 1e9 : 0;
    return std::min(rate_.burst, tokens_ + seconds * rate_.per_second);
  }

  Rate rate_;
  double tokens_;
  std::uint64_t since_ns_ = 0;
};

}  // namespace gpuctl::daemon
