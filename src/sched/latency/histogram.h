// Latencies of bursts or requests, counted in the buckets of base/latency_buckets.h. Histograms of several clients add
// up to that of their slice.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/latency_buckets.h"

namespace gpuctl::sched {

class LatencyHistogram {
 public:
  using Counts = std::array<std::uint64_t, kLatencyBuckets>;

  void add(std::chrono::nanoseconds latency, std::uint64_t times = 1) {
    add_to_bucket(latency_bucket(static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0))), times);
  }
  void add_to_bucket(std::size_t bucket, std::uint64_t times) {
    counts_[bucket] += times;
    count_ += times;
  }
  LatencyHistogram& operator+=(const LatencyHistogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    return *this;
  }

  std::uint64_t count() const { return count_; }
  const Counts& counts() const { return counts_; }

  /// Nearest rank (base/percentile.h): about the least latency that at least `share` (0 to 1) of all do not exceed.
  /// None if nothing was counted.
  std::optional<std::chrono::nanoseconds> percentile(double share) const {
    if (count_ == 0) return std::nullopt;
    auto left = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))), 1,
                                          count_);
    std::size_t bucket = 0;
    while (counts_[bucket] < left) left -= counts_[bucket++];
    return std::chrono::nanoseconds{latency_of_bucket(bucket)};
  }

  bool operator==(const LatencyHistogram&) const = default;

 private:
  Counts counts_{};
  std::uint64_t count_ = 0;
};

}  // namespace gpuctl::sched
