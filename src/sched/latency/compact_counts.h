// The counts of a histogram (histogram.h) as they are kept: of the octaves in use alone. A program's bursts lie in a
// few of them, and there are thousands of programs with a histogram for each GPU and step of a window.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "sched/latency/histogram.h"

namespace gpuctl::sched {

/// What does not fit into a Count stays at its greatest value.
template <class Count>
class CompactCounts {
 public:
  void add(const LatencyHistogram& more) {
    const auto& counts = more.counts();
    std::size_t begin = kLatencyOctaves, end = 0;  // the octaves in which there is something
    for (std::size_t octave = 0; octave < kLatencyOctaves; ++octave) {
      const auto* first = counts.data() + octave * kSteps;
      if (std::all_of(first, first + kSteps, [](std::uint64_t count) { return count == 0; })) continue;
      begin = std::min(begin, octave);
      end = octave + 1;
    }
    if (begin >= end) return;
    make_room(begin, end);
    for (std::size_t i = begin * kSteps; i < end * kSteps; ++i) {
      Count& mine = counts_[i - begin_ * kSteps];
      const Count room = std::numeric_limits<Count>::max() - mine;
      mine += static_cast<Count>(std::min<std::uint64_t>(counts[i], room));
    }
  }

  void add_to(LatencyHistogram& sum) const {
    for (std::size_t i = 0; i < octaves_ * kSteps; ++i)
      if (counts_[i] != 0) sum.add_to_bucket(begin_ * kSteps + i, counts_[i]);
  }

 private:
  static constexpr std::size_t kSteps = std::size_t{1} << kLatencyStepBits;

  void make_room(std::size_t begin, std::size_t end) {
    if (octaves_ > 0) {
      begin = std::min<std::size_t>(begin, begin_);
      end = std::max<std::size_t>(end, begin_ + octaves_);
    }
    if (end - begin == octaves_) return;
    auto counts = std::make_unique<Count[]>((end - begin) * kSteps);
    if (octaves_ > 0) std::copy_n(counts_.get(), octaves_ * kSteps, counts.get() + (begin_ - begin) * kSteps);
    counts_ = std::move(counts);
    begin_ = static_cast<std::uint8_t>(begin);
    octaves_ = static_cast<std::uint8_t>(end - begin);
  }

  std::unique_ptr<Count[]> counts_;
  std::uint8_t begin_ = 0, octaves_ = 0;
};

}  // namespace gpuctl::sched
