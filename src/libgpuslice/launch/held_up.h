// Whether the streams of the program hold up all those that the agent sends workers with (worker_streams.h).
#pragma once

#include <cstdint>

namespace gpuslice {

/// One thread. That no stream can be used means little by itself: workers also begin late where the SMs are busy or the
/// machine is slow. Streams that hold up each other stay so until a launch ends, so what counts is that it lasts.
class HeldUp {
 public:
  static constexpr std::uint64_t kLastsNs = 200'000'000;

  /// At each try to send workers: whether there was a stream for them. True: there was none for kLastsNs.
  bool tried(bool found, std::uint64_t now_ns) {
    if (found) {
      since_ns_ = 0;
      return false;
    }
    if (since_ns_ == 0) since_ns_ = now_ns;
    return now_ns - since_ns_ >= kLastsNs;
  }

 private:
  std::uint64_t since_ns_ = 0;  ///< of the first try in vain since one was not; 0: none
};

}  // namespace gpuslice
