#include "libgpuslice/divide.h"

#include <algorithm>

namespace gpuslice {

namespace {

// Water-filling: raises a common level until the grant is used up or all of this class have what they can use.
void fill(std::uint32_t& left, bool latency_critical, const std::vector<StreamDemand>& streams,
          std::vector<std::uint32_t>& shares) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i].latency_critical == latency_critical && streams[i].capsm > 0) open.push_back(i);
  }
  std::sort(open.begin(), open.end(), [&](std::size_t a, std::size_t b) { return streams[a].capsm < streams[b].capsm; });
  for (std::size_t k = 0; k < open.size(); ++k) {
    const auto waiting = static_cast<std::uint32_t>(open.size() - k);
    const std::uint32_t even = (left + waiting - 1) / waiting;
    shares[open[k]] = std::min({streams[open[k]].capsm, even, left});
    left -= shares[open[k]];
  }
}

}  // namespace

std::vector<std::uint32_t> divide_grant(std::uint32_t grant, const std::vector<StreamDemand>& streams) {
  std::vector<std::uint32_t> shares(streams.size(), 0);
  std::uint32_t left = grant;
  fill(left, true, streams, shares);
  fill(left, false, streams, shares);
  if (grant > 0) {
    for (std::uint32_t& share : shares) share = std::max(share, 1u);
  }
  return shares;
}

}  // namespace gpuslice
