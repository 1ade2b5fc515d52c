// The workers that the agent added to a launch, and how many of them should have begun by now.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time.
class SentWorkers {
 public:
  /// How long workers may take to begin when there is room for them.
  static constexpr std::uint64_t kPatienceNs = 2'000'000;

  void send(std::uint32_t workers, std::uint64_t now_ns) {
    if (now_ns - since_ns_ >= kPatienceNs) {
      before_ = all_;
      since_ns_ = now_ns;
    }
    all_ += workers;
  }

  /// How many workers are overdue: sent at least kPatienceNs plus `more_ns` ago and not begun. `entered` workers have
  /// begun.
  std::uint32_t overdue(std::uint32_t entered, std::uint64_t more_ns, std::uint64_t now_ns) const {
    const std::uint32_t due = now_ns - since_ns_ >= kPatienceNs + more_ns ? all_ : before_;
    return due - std::min(due, entered);
  }

 private:
  std::uint32_t all_ = 0, before_ = 0;  ///< before_: those sent before since_ns_
  std::uint64_t since_ns_ = 0;
};

}  // namespace gpuslice
