// How long the workers of a launch were at work, all together, however many there were at what time: what its
// block-tasks took.
#pragma once

#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds of one clock.
class WorkTime {
 public:
  /// From `now_ns` on there are so many. Until then there were as many as said before; nothing is known of what was
  /// before the first call.
  void set(std::uint32_t workers, std::uint64_t now_ns) {
    sum_ns_ = until(now_ns);
    since_ns_ = now_ns;
    workers_ = workers;
  }

  bool known() const { return since_ns_ != 0; }

  /// Worker nanoseconds.
  double until(std::uint64_t end_ns) const {
    return end_ns > since_ns_ ? sum_ns_ + static_cast<double>(end_ns - since_ns_) * workers_ : sum_ns_;
  }

 private:
  double sum_ns_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint32_t workers_ = 0;
};

}  // namespace gpuslice
