#include "libgpuslice/launch/stream_limits.h"

#include <algorithm>
#include <vector>

#include "libgpuslice/launch/demand.h"
#include "libgpuslice/launch/divide.h"

namespace gpuslice {

using gpuctl::Polled;

void StreamLimits::choose(Stream& stream) const {
  stream.limit = 0;
  for (std::uint32_t limit = 1; limit < limits_.size() && stream.limit == 0; ++limit) {
    const auto has_it = [&](const Stream* other) { return other->limit == limit; };
    if (std::none_of(book_.active().begin(), book_.active().end(), has_it)) stream.limit = limit;
  }
}

void StreamLimits::divide() {
  limits_.fill(gpuctl::kNoLimit);
  const std::vector<Stream*>& sharing = book_.active();
  if (sharing.size() > 1) {
    std::vector<StreamDemand> demands;
    for (const Stream* stream : sharing) {
      demands.push_back({demand_of(*stream, book_.slots(), view_.sms()), stream->latency_critical});
    }
    const std::vector<Polled::Limit> limits = divide_grant(view_.granted(), demands);
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      if (sharing[i]->limit != 0) limits_[sharing[i]->limit] = limits[i];
    }
  }
  if (Polled* polled = view_.polled()) write_to(*polled);
}

/// Workers read each limit as one word.
void StreamLimits::write_to(Polled& polled) const {
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    Polled::Limit limit = limits_[i];
    __atomic_store(&polled.limits[i], &limit, __ATOMIC_RELEASE);
  }
}

}  // namespace gpuslice
