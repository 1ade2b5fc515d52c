#include "libgpuslice/divide.h"

#include <algorithm>

namespace gpuslice {

using gpuctl::SmSet;

namespace {

// Water-filling: raises a common level until the grant is used up or all of this class have what they can use.
void fill(std::uint32_t& left, bool latency_critical, const std::vector<StreamDemand>& streams,
          std::vector<std::uint32_t>& shares) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].latency_critical == latency_critical && streams[i].capsm > 0) open.push_back(i);
  }
  std::sort(open.begin(), open.end(),
            [&](std::size_t a, std::size_t b) { return streams[a].capsm < streams[b].capsm; });
  for (std::size_t k = 0; k < open.size(); ++k) {
    const auto waiting = static_cast<std::uint32_t>(open.size() - k);
    const std::uint32_t even = (left + waiting - 1) / waiting;
    shares[open[k]] = std::min({streams[open[k]].capsm, even, left});
    left -= shares[open[k]];
  }
}

}  // namespace

std::vector<SmSet> divide_grant(const SmSet& grant, const std::vector<StreamDemand>& streams) {
  std::uint32_t left = grant.size();
  std::uint64_t wanted = 0;
  bool latency_critical = false;
  for (const StreamDemand& stream : streams) {
    wanted += stream.capsm;
    latency_critical |= stream.latency_critical;
  }
  if (left == 0 || (wanted <= left && !latency_critical)) return std::vector<SmSet>(streams.size(), grant);

  std::vector<std::uint32_t> shares(streams.size(), 0);
  fill(left, true, streams, shares);
  fill(left, false, streams, shares);
  for (std::size_t i = 0; left > 0; i = (i + 1) % shares.size(), --left) ++shares[i];

  std::vector<SmSet> sets;
  SmSet open = grant;
  for (const std::uint32_t share : shares) {
    const SmSet mine = open.lowest(share);
    open -= mine;
    sets.push_back(mine);
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].empty()) sets[i] = grant.highest(static_cast<std::uint32_t>(i) % grant.size() + 1).lowest(1);
  }
  return sets;
}

}  // namespace gpuslice
