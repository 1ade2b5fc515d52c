#include "gpuctld/manager/mps_servers.h"

#include <algorithm>

namespace gpuctl::daemon {

void MpsServers::write(std::span<const std::uint32_t> us, std::uint64_t now_ns) {
  for (auto& [session, page] : pages_)
    for (std::size_t slot = 0; slot < std::min(page.slots().size(), us.size()); ++slot) {
      page.write_terms(slot, {.time_slice_us = us[slot]});
      page.write_grant_if_new(slot, 0, 0, now_ns);
    }
}

ipc::TimeSlice MpsServers::work() const {
  ipc::TimeSlice found = ipc::TimeSlice::not_tried;
  for (const auto& [session, page] : pages_)
    for (std::size_t slot = 0; slot < page.slots().size(); ++slot) {
      const ipc::TimeSlice state = page.time_slice(slot);
      if (state == ipc::TimeSlice::in_force || (found != ipc::TimeSlice::in_force && state > found)) found = state;
    }
  return found;
}

}  // namespace gpuctl::daemon
