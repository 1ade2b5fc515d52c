// How a client divides its grant among its streams that have work: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/sm_range.h"

namespace gpuslice {

struct StreamDemand {
  std::uint32_t capsm = 0;        ///< CapSM the stream's running launch could fill
  bool latency_critical = false;  ///< served first (gpuslice_stream_latency_critical)
};

/// The range of SMs each stream may use, in order. `grant`: SMs, at most kMaxSms.
///
/// While the grant covers all demands and no stream is latency-critical, everybody may use all of it: the hardware
/// finds room for all. Otherwise each gets SMs of its own: latency-critical streams first, then an even split up to
/// each one's demand, then what is left over, evenly. With a grant of at least one SM nobody gets less than one, so
/// that no stream starves behind another; where there are more streams than SMs they share.
std::vector<gpuctl::Polled::Limit> divide_grant(std::uint32_t grant, const std::vector<StreamDemand>& streams);

}  // namespace gpuslice
