#include "gpuctld/ends/ended.h"

#include "sched/slices.h"

namespace gpuctl::daemon {

void Ended::add(std::string_view slice, std::int64_t programs, const LaunchCounts& counts) {
  sched::for_each_up(slice, [&](std::string_view path) {
    Sums& sums = by_slice_[std::string(path)];
    sums.programs += programs;
    sums.counts += counts;
  });
}

Ended::Sums Ended::of(std::string_view slice) const {
  const auto found = by_slice_.find(slice);
  return found == by_slice_.end() ? Sums{} : found->second;
}

void Ended::keep(const std::function<bool(const std::string& slice)>& exists) {
  std::erase_if(by_slice_, [&](const auto& entry) { return !exists(entry.first); });
}

}  // namespace gpuctl::daemon
