// Measures how long launches in original form take on the GPU, for those that are timed (timing_choice.h), with an
// event before and one after each. Only while a policy for jobs is in force, and never in a capture. No thread waits
// for an event: the agent queries them.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "libgpuslice/image/timing_choice.h"

namespace gpuslice {

struct KernelInfo;

/// A launch in original form, of a kernel or a graph, as a policy for jobs sees it.
struct OpaqueJob {
  std::uint64_t kernel = 0;     ///< ipc::kernel_hash; 0: the kernel is not known by name
  std::uint64_t issued_ns = 0;  ///< CLOCK_MONOTONIC; also identifies the launch; 0: there is none
  std::uint32_t blocks = 0, threads = 0, shared = 0;
  std::uint64_t input_bytes = 0;  ///< memory into which its parameters point, as far as known
};

struct TimedLaunch {
  OpaqueJob job;
  std::uint32_t sms = 0;      ///< number of SMs that it was confined to; 0: not confined
  std::uint64_t gpu_ns = 0;   ///< time that it took
  std::uint64_t done_ns = 0;  ///< when it was found complete; CLOCK_MONOTONIC
};

/// For one stream. The caller holds its lane's mutex, and the stream's context is current.
class LaunchTimer {
 public:
  LaunchTimer() = default;
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;
  LaunchTimer& operator=(const LaunchTimer&) = delete;

  /// Called before a launch into this stream. Records the first event if the launch is to be timed.
  void begin(CUstream stream, KernelInfo& kernel, const OpaqueJob& job);
  /// Called after the launch, with the stream that it went to. Records the second event.
  void end(CUstream stream, std::uint32_t sms);
  /// The launch will not end in that stream, so it is not timed.
  void give_up() { under_way_ = false; }

  /// Appends the timed launches that are complete to `out`. Only the agent calls it.
  void collect(std::vector<TimedLaunch>& out);
  /// The oldest timed launch that is not known to be complete; null: there is none.
  const OpaqueJob* oldest() const { return count_ == 0 ? nullptr : &timings_[first_].job; }

 private:
  struct Timing {
    CUevent before = nullptr, behind = nullptr;
    OpaqueJob job;
    std::uint32_t sms = 0;
    std::uint64_t host_ns = 0;  ///< how long the program took for the launch call
  };
  static constexpr std::size_t kMost = 8;

  Timing& next() { return timings_[(first_ + count_) % kMost]; }

  TimingChoice choice_;
  std::array<Timing, kMost> timings_;  ///< a ring
  std::size_t first_ = 0, count_ = 0;
  bool under_way_ = false;  ///< the first event of next() is recorded
  bool useless_ = false;    ///< the driver cannot make such events
};

}  // namespace gpuslice
