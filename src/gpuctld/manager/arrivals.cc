#include "gpuctld/manager/arrivals.h"

#include <algorithm>

#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

bool Arrivals::news(std::int32_t pid, const std::string& slice) {
  Arrival arrival{start_of(pid), slice};
  if (arrival.start == 0) return true;
  Arrival& before = seen_[pid];
  if (before == arrival) return false;
  before = std::move(arrival);
  if (seen_.size() >= forget_at_) {
    std::erase_if(seen_,
                  [&](const auto& seen) { return seen.first != pid && start_of(seen.first) != seen.second.start; });
    forget_at_ = std::max<std::size_t>(64, 2 * seen_.size());
  }
  return true;
}

}  // namespace gpuctl::daemon
