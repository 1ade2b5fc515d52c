// The workers that the agent sent after a launch, and how many of them should have begun by now.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time.
class SentWorkers {
 public:
  /// How long workers may take to begin where there is room for them.
  static constexpr std::uint64_t kPatienceNs = 2'000'000;

  void send(std::uint32_t workers, std::uint64_t now_ns) {
    if (now_ns - since_ns_ >= kPatienceNs) {
      before_ = all_;
      since_ns_ = now_ns;
    }
    all_ += workers;
  }

  /// Of those sent at least kPatienceNs and `more_ns` ago, how many are missing, if so many of all began: `entered`.
  std::uint32_t overdue(std::uint32_t entered, std::uint64_t more_ns, std::uint64_t now_ns) const {
    const std::uint32_t due = now_ns - since_ns_ >= kPatienceNs + more_ns ? all_ : before_;
    return due - std::min(due, entered);
  }

 private:
  std::uint32_t all_ = 0, before_ = 0;  ///< before_: until since_ns_
  std::uint64_t since_ns_ = 0;
};

}  // namespace gpuslice
