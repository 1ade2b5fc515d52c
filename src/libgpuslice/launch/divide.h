// Divides a client's grant among its streams that have work. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/sm_range.h"

namespace gpuslice {

struct StreamDemand {
  std::uint32_t capsm = 0;        ///< CapSM the stream's running launch could fill
  bool latency_critical = false;  ///< served before other streams (gpuslice_stream_latency_critical)
};

/// The range of SMs that each stream may use, in the order of `streams`. `grant`: SMs, at most kMaxSms.
///
/// If the grant covers all demands and no stream is latency-critical, every stream may use the whole grant, since the
/// hardware finds room for all. Otherwise each stream gets SMs of its own. Latency-critical streams come first. The
/// rest is split evenly, up to each stream's demand. SMs that are left then go to all streams evenly. If the grant has
/// at least one SM, each stream gets at least one, so that no stream starves behind another. If there are more streams
/// than SMs, streams share SMs.
std::vector<gpuctl::Polled::Limit> divide_grant(std::uint32_t grant, const std::vector<StreamDemand>& streams);

}  // namespace gpuslice
