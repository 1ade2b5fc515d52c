// How long launches in original form take on the GPU, of those that are timed (timing_choice.h): an event before each
// and one behind it. Only while a policy for jobs is in force; never in a capture. Nobody waits for an event: the agent
// asks for them.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <vector>

#include "libgpuslice/streams/timing_choice.h"

namespace gpuslice {

struct KernelInfo;

/// A launch in original form, of a kernel or a graph, as a policy for jobs sees it.
struct OpaqueJob {
  std::uint64_t kernel = 0;     ///< ipc::kernel_hash; 0: of one that is not known by name
  std::uint64_t issued_ns = 0;  ///< CLOCK_MONOTONIC, by which it is told from others; 0: there is none
  std::uint32_t blocks = 0, threads = 0, shared = 0;
};

struct TimedLaunch {
  OpaqueJob job;
  std::uint32_t sms = 0;      ///< to which it was confined; 0: none
  std::uint64_t gpu_ns = 0;   ///< it took
  std::uint64_t done_ns = 0;  ///< when it was found complete; CLOCK_MONOTONIC
};

/// Of one stream. With its lane's mutex; the stream's context is current.
class LaunchTimer {
 public:
  LaunchTimer() = default;
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;
  LaunchTimer& operator=(const LaunchTimer&) = delete;

  /// Before a launch into this stream: times it if it is its turn.
  void begin(CUstream stream, KernelInfo& kernel, const OpaqueJob& job);
  /// After it, where it went.
  void end(CUstream stream, std::uint32_t sms);
  /// It will not end there.
  void give_up() { under_way_ = false; }

  /// Moves those that are complete to the end of `out`. The agent.
  void collect(std::vector<TimedLaunch>& out);
  /// The oldest that is not known to be complete; null: none.
  const OpaqueJob* oldest() const { return count_ == 0 ? nullptr : &timings_[first_].job; }

 private:
  struct Timing {
    CUevent before = nullptr, behind = nullptr;
    OpaqueJob job;
    std::uint32_t sms = 0;
    std::uint64_t host_ns = 0;  ///< the program was at the launch
  };
  static constexpr std::size_t kMost = 8;

  Timing& next() { return timings_[(first_ + count_) % kMost]; }

  TimingChoice choice_;
  std::array<Timing, kMost> timings_;  ///< a ring
  std::size_t first_ = 0, count_ = 0;
  bool under_way_ = false;  ///< next() has begun
  bool useless_ = false;    ///< the driver makes no such events
};

}  // namespace gpuslice
