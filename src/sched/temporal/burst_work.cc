#include "sched/temporal/burst_work.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpuctl::sched {

void BurstWork::comes(std::uint32_t ended, std::uint64_t kernel) {
  if (begun_ && ended == ended_) return;
  if (begun_ && told_all_) learn(used_ / (ended - ended_));
  begun_ = told_all_ = true, ended_ = ended, first_ = kernel, used_ = Time{0};
}

void BurstWork::learn(Time whole) {
  if (whole == Time{0}) return;
  const auto same =
      std::ranges::find_if(learnt_, [this](const Learnt& one) { return one.whole > Time{0} && one.kernel == first_; });
  if (same != learnt_.end()) {
    same->whole = (3 * same->whole + whole) / 4;
    latest_ = static_cast<std::size_t>(same - learnt_.begin());
    return;
  }
  latest_ = std::exchange(next_, (next_ + 1) % learnt_.size());
  learnt_[latest_] = {first_, whole};
}

const BurstWork::Learnt* BurstWork::find(std::uint64_t kernel) const {
  for (const Learnt& one : learnt_)
    if (one.whole > Time{0} && one.kernel == kernel) return &one;
  return learnt_[latest_].whole > Time{0} ? &learnt_[latest_] : nullptr;
}

Time BurstWork::behind(Time launch) const {
  const Learnt* known = begun_ ? find(first_) : nullptr;
  if (known == nullptr) return Time{0};
  // Once it is late: as long as it has been late so far. One that never ends is no longer than others were.
  const Time late = used_ - known->whole;
  const Time left = std::min(std::chrono::abs(late), known->whole) - launch;
  return left > launch / 2 ? left : Time{0};
}

}  // namespace gpuctl::sched
