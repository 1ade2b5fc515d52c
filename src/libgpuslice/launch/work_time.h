// How long the workers of a launch worked, summed over all workers, while their number changed. This is the time that
// its block-tasks took.
#pragma once

#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds of one clock.
class WorkTime {
 public:
  /// From `now_ns` on, `workers` workers work. Before that it was the number given in the previous call. Time before
  /// the first call does not count.
  void set(std::uint32_t workers, std::uint64_t now_ns) {
    sum_ns_ = until(now_ns);
    since_ns_ = now_ns;
    workers_ = workers;
  }

  bool known() const { return since_ns_ != 0; }

  /// Worker nanoseconds until `end_ns`.
  double until(std::uint64_t end_ns) const {
    return end_ns > since_ns_ ? sum_ns_ + static_cast<double>(end_ns - since_ns_) * workers_ : sum_ns_;
  }

 private:
  double sum_ns_ = 0;
  std::uint64_t since_ns_ = 0;
  std::uint32_t workers_ = 0;
};

}  // namespace gpuslice
