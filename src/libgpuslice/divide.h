// How a client divides its grant among its streams that have work: pure.
#pragma once

#include <cstdint>
#include <vector>

namespace gpuslice {

struct StreamDemand {
  std::uint32_t capsm = 0;         ///< CapSM the stream's running launch could fill
  bool latency_critical = false;   ///< served first (gpuslice_stream_latency_critical)
};

/// CapSM for each stream, in order. Latency-critical streams first, then an even split up to each one's demand; what
/// is left over goes to whoever can use it. With a grant above 0 everybody gets at least 1, so that no stream starves
/// behind another (then the sum may exceed the grant by the number of such streams).
std::vector<std::uint32_t> divide_grant(std::uint32_t grant, const std::vector<StreamDemand>& streams);

}  // namespace gpuslice
