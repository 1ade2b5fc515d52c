// What a slice's bursts take alone: learnt from times in which no other program has work on the GPU, or in which others
// are paused (pauses.h). Bursts of a stretch may be slow for a reason that has gone, such as compilation; so the median
// of several stretches counts. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "sched/latency/histogram.h"

namespace gpuctl::sched {

class Alone {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  /// As many bursts tell about what the percentile is.
  static constexpr std::uint64_t kEnough = 30;
  /// A stretch has so many at least, and lasts so long: bursts at the same instant have the same cause.
  static constexpr std::uint64_t kStretch = 100;
  static constexpr Nanoseconds kLeastStretch = std::chrono::seconds{1};
  static constexpr std::size_t kStretches = 7;  ///< the latest are kept

  /// Bursts that began and ended while no other program had work.
  void add(const LatencyHistogram& bursts, Nanoseconds now) {
    if (now_.count() == 0) began_ = now;
    now_ += bursts;
    if (now_.count() < kStretch || now - began_ < kLeastStretch) return;
    if (stretches_.size() == kStretches) stretches_.erase(stretches_.begin());
    stretches_.push_back({.count = now_.count(), .p99 = *now_.percentile(0.99), .began = began_});
    now_ = {};
  }

  bool known() const { return count() >= kEnough; }
  /// Of those that are kept.
  std::uint64_t count() const {
    std::uint64_t sum = now_.count();
    for (const Stretch& stretch : stretches_) sum += stretch.count;
    return sum;
  }
  /// Of the stretch in the middle; of two the lesser one.
  Nanoseconds p99() const {
    std::vector<Nanoseconds> all;
    for (const Stretch& stretch : stretches_) all.push_back(stretch.p99);
    if (all.empty() || now_.count() >= kEnough)
      if (const auto latest = now_.percentile(0.99)) all.push_back(*latest);
    if (all.empty()) return {};
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
  }
  /// The least of the complete stretches that began then or later; 0: there is none.
  Nanoseconds least_since(Nanoseconds then) const {
    Nanoseconds least{};
    for (const Stretch& stretch : stretches_)
      if (stretch.began >= then && (least.count() == 0 || stretch.p99 < least)) least = stretch.p99;
    return least;
  }

 private:
  struct Stretch {
    std::uint64_t count = 0;
    Nanoseconds p99{}, began{};
  };
  std::vector<Stretch> stretches_;
  LatencyHistogram now_;
  Nanoseconds began_{};
};

}  // namespace gpuctl::sched
