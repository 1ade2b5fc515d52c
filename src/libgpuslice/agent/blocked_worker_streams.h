// Whether the program's streams block all streams that the agent sends workers with (worker_streams.h).
#pragma once

#include <cstdint>

namespace gpuslice {

/// One thread. A single try without a usable stream means little: workers also begin late when the SMs are busy or the
/// machine is slow. Streams that block each other stay blocked until a launch ends. So this looks at how long the
/// condition lasts.
class BlockedWorkerStreams {
 public:
  static constexpr std::uint64_t kLastsNs = 200'000'000;

  /// Called at each try to send workers. `found`: there was a stream for them. Returns true when there has been none
  /// for kLastsNs.
  bool tried(bool found, std::uint64_t now_ns) {
    if (found) {
      since_ns_ = 0;
      return false;
    }
    if (since_ns_ == 0) since_ns_ = now_ns;
    return now_ns - since_ns_ >= kLastsNs;
  }

 private:
  std::uint64_t since_ns_ = 0;  ///< time of the first failed try since the last success; 0: none
};

}  // namespace gpuslice
