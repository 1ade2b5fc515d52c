#include "gpuctld/ends/ended.h"

#include <limits>

#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

/// `added` is not negative. A program may have reported any number.
void add_to(std::int64_t& sum, std::int64_t added) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  sum = added > most - sum ? most : sum + added;
}

}  // namespace

void Ended::add(std::string_view slice, const std::vector<ipc::ClientUsage>& usage) {
  sched::for_each_up(slice, [&](std::string_view path) {
    Sums& sums = by_slice_[std::string(path)];
    add_to(sums.programs, 1);
    for (const ipc::ClientUsage& of_device : usage) {
      add_to(sums.launches, of_device.launches);
      add_to(sums.evictions, of_device.evictions);
    }
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
