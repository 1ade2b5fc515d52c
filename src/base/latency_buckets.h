// The buckets in which latencies are counted: those of a client's bursts and requests in its stub page, and what the
// daemon adds up. Eight of equal width to an octave, from 8.2 us to 137 s. What is shorter counts in the first bucket,
// what is longer in the last. A bucket stands for its middle, so a percentile read from it is wrong by at most 1/16,
// 6.25 %, within these bounds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gpuctl {

inline constexpr unsigned kLatencyFirstOctave = 13, kLatencyOctaves = 24;  // from 2^13 ns
inline constexpr unsigned kLatencyStepBits = 3;                            // 2^3 buckets an octave
inline constexpr std::size_t kLatencyBuckets = std::size_t{kLatencyOctaves} << kLatencyStepBits;

constexpr std::size_t latency_bucket(std::uint64_t ns) {
  const std::uint64_t inside = std::clamp(ns, std::uint64_t{1} << kLatencyFirstOctave,
                                          (std::uint64_t{1} << (kLatencyFirstOctave + kLatencyOctaves)) - 1);
  const unsigned octave = static_cast<unsigned>(std::bit_width(inside)) - 1;
  // The leading bit and the three after it: 8 to 15.
  const std::size_t eighths = inside >> (octave - kLatencyStepBits);
  return (std::size_t{octave - kLatencyFirstOctave} << kLatencyStepBits) + eighths - (1u << kLatencyStepBits);
}

/// Where a bucket begins, in ns; also for kLatencyBuckets, where the last one ends.
constexpr std::uint64_t latency_bucket_begin(std::size_t bucket) {
  constexpr std::size_t kSteps = std::size_t{1} << kLatencyStepBits;
  const std::size_t octave = kLatencyFirstOctave + bucket / kSteps;
  return static_cast<std::uint64_t>(kSteps + bucket % kSteps) << (octave - kLatencyStepBits);
}

/// What a bucket stands for, in ns.
constexpr std::uint64_t latency_of_bucket(std::size_t bucket) {
  return (latency_bucket_begin(bucket) + latency_bucket_begin(bucket + 1)) / 2;
}

/// Where the last bucket begins, in ns, which has all that took longer: of a latency in it no more is known, and this
/// is said.
inline constexpr std::uint64_t kLongestLatency = latency_bucket_begin(kLatencyBuckets - 1);

}  // namespace gpuctl
