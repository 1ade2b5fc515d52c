// When launches are due.
#pragma once

#include <cstdint>

#include "kernels/problem/random.h"

namespace gpuctl::bench {

enum class Arrival { kBackToBack, kPeriodic, kPoisson, kBursts, kApart };

/// The sequence of due times, in nanoseconds of CLOCK_MONOTONIC. Back to back: always due. Periodic: the first at the
/// start, then one every period. Poisson: gaps drawn from an exponential distribution of that mean. Bursts: `burst`
/// launches at the start, then so many every period. Apart: the first at the start, each other one a period after the
/// latest completion; for one launch in flight.
class Schedule {
 public:
  Schedule(Arrival arrival, double period_us, std::uint32_t burst, std::uint64_t seed, std::int64_t start_ns);

  /// When the next launch is due.
  std::int64_t due_ns() const { return due_ns_; }
  /// The launch that was due was issued.
  void advance();
  /// A launch was complete at that time.
  void completed(std::int64_t at_ns);

 private:
  Arrival arrival_;
  double period_ns_;
  std::uint32_t burst_;
  Random random_;
  std::int64_t start_ns_;
  double elapsed_ns_ = 0;
  std::uint32_t of_burst_ = 0;  ///< launches of the present burst that were issued
  std::int64_t due_ns_;
};

}  // namespace gpuctl::bench
