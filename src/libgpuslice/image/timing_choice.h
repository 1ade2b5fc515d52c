// Which launches in original form are timed, and which of the measured times are credible. Two events around a launch
// cost the program some microseconds and the GPU about one. So only a sample is timed: each kernel's first launches,
// and later one launch per millisecond in each stream. Kernels that run often or long come up often enough, and a
// program pays some thousandths of its time.
#pragma once

#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds of one clock.
class TimingChoice {
 public:
  static constexpr std::uint32_t kFirst = 4;  ///< launches of each kernel
  static constexpr std::uint64_t kEveryNs = 1'000'000;
  static constexpr std::uint64_t kPromptNs = 200'000;

  /// Whether to time the launch that is about to be made. `timed`: how many launches of this kernel were timed.
  bool is_next(std::uint32_t timed, std::uint64_t now_ns) {
    if (timed >= kFirst && now_ns - latest_ns_ < kEveryNs) return false;
    latest_ns_ = now_ns;
    return true;
  }

  /// Whether a measured time is credible. From one event to the other the GPU took `gpu_ns`, and the program took
  /// `host_ns`. In an empty stream the GPU reaches the first event at once; a delay of the program before the launch
  /// itself then counts as the kernel's time.
  static bool is_credible(std::uint64_t gpu_ns, std::uint64_t host_ns) {
    return gpu_ns > 0 && (host_ns <= kPromptNs || host_ns <= gpu_ns / 4);
  }

 private:
  std::uint64_t latest_ns_ = 0;
};

}  // namespace gpuslice
