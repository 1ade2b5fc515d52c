// How often a client launches something on a device, as a mean over about the last second. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuctl::daemon {

class LaunchRate {
 public:
  /// A mean is taken anew after this long at least: clients publish how much they launched each 200 ms.
  static constexpr std::uint64_t kLeastNs = 400'000'000;
  /// What is older than this counts less than half.
  static constexpr double kMeanNs = 1e9;

  /// `launches`: the client's count so far. A count that falls begins anew. `now_ns` does not fall.
  void saw(std::uint64_t launches, std::uint64_t now_ns) {
    if (since_ns_ == 0 || launches < launches_) {
      since_ns_ = now_ns;
      launches_ = launches;
      return;
    }
    if (now_ns - since_ns_ < kLeastNs) return;
    const auto elapsed_ns = static_cast<double>(now_ns - since_ns_);
    const double latest = static_cast<double>(launches - launches_) * 1e9 / elapsed_ns;
    per_s_ += (latest - per_s_) * std::min(1.0, elapsed_ns / kMeanNs);
    since_ns_ = now_ns;
    launches_ = launches;
  }

  double per_s() const { return per_s_; }

 private:
  std::uint64_t since_ns_ = 0, launches_ = 0;
  double per_s_ = 0;
};

}  // namespace gpuctl::daemon
