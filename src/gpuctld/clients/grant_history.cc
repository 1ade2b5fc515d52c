#include "gpuctld/clients/grant_history.h"

#include <algorithm>

namespace gpuctl::daemon {

void GrantHistory::wrote(std::uint32_t capsm, std::uint64_t now_ns) {
  if (count_ > 0 && changes_[(count_ - 1) % changes_.size()].capsm == capsm) return;
  changes_[count_++ % changes_.size()] = {now_ns, capsm};
}

std::optional<GrantHistory::Held> GrantHistory::held(std::uint64_t from_ns, std::uint64_t to_ns,
                                                     std::uint32_t usable) const {
  Held held;
  double sum = 0;
  std::uint64_t end = to_ns;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, changes_.size());
  for (std::uint64_t i = 0; i < kept && end > from_ns; ++i) {
    const Change& change = changes_[(count_ - 1 - i) % changes_.size()];
    if (change.ns >= end) continue;
    const std::uint64_t ns = end - std::max(change.ns, from_ns);
    end = std::max(change.ns, from_ns);
    const std::uint32_t capsm = std::min(change.capsm, usable);
    if (capsm == 0) continue;
    held.least = held.ns == 0 ? capsm : std::min(held.least, capsm);
    held.most = std::max(held.most, capsm);
    held.ns += ns;
    sum += static_cast<double>(ns) * capsm;
  }
  if (end > from_ns || held.ns == 0) return std::nullopt;
  held.capsm = sum / static_cast<double>(held.ns);
  return held;
}

}  // namespace gpuctl::daemon
