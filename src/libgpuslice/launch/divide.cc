#include "libgpuslice/launch/divide.h"

#include <algorithm>

namespace gpuslice {

using Limit = gpuctl::Polled::Limit;

namespace {

// Water-filling: splits what is left evenly among the streams of this class, up to each one's demand, smallest demand
// first.
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

std::vector<Limit> divide_grant(std::uint32_t grant, const std::vector<StreamDemand>& streams) {
  std::uint32_t left = grant;
  std::uint64_t wanted = 0;
  bool latency_critical = false;
  for (const StreamDemand& stream : streams) {
    wanted += stream.capsm;
    latency_critical |= stream.latency_critical;
  }
  if (grant == 0 || (wanted <= grant && !latency_critical)) return std::vector<Limit>(streams.size(), gpuctl::kNoLimit);

  // Keeps one SM for each of the other streams, if there are enough SMs.
  const auto others = static_cast<std::uint32_t>(std::count_if(
      streams.begin(), streams.end(), [](const StreamDemand& s) { return !s.latency_critical && s.capsm > 0; }));
  const std::uint32_t kept = left > others ? others : 0;
  std::vector<std::uint32_t> shares(streams.size(), 0);
  left -= kept;
  fill(left, true, streams, shares);
  left += kept;
  fill(left, false, streams, shares);
  for (std::size_t i = 0; left > 0; i = (i + 1) % shares.size(), --left) ++shares[i];

  std::vector<Limit> limits;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::uint32_t first = shares[i] > 0 ? next : static_cast<std::uint32_t>(i) % grant;
    const std::uint32_t last = first + std::max(shares[i], 1u) - 1;
    limits.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last)});
    next += shares[i];
  }
  return limits;
}

}  // namespace gpuslice
