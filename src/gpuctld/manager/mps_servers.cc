#include "gpuctld/manager/mps_servers.h"

#include <algorithm>

namespace gpuctl::daemon {

bool MpsServers::any(const std::string& mps) const {
  return std::ranges::any_of(pages_, [&](const auto& entry) { return entry.second.mps == mps; });
}

void MpsServers::write(const std::string& mps, std::span<const std::uint32_t> us, std::uint64_t now_ns) {
  for (auto& [session, server] : pages_) {
    if (server.mps != mps) continue;
    for (std::size_t slot = 0; slot < std::min(server.page.slots().size(), us.size()); ++slot) {
      server.page.write_terms(slot, {.time_slice_us = us[slot]});
      server.page.write_grant_if_new(slot, 0, 0, now_ns);
    }
  }
}

ipc::TimeSlice MpsServers::work(const std::string& mps) const {
  ipc::TimeSlice found = ipc::TimeSlice::not_tried;
  for (const auto& [session, server] : pages_) {
    if (server.mps != mps) continue;
    for (std::size_t slot = 0; slot < server.page.slots().size(); ++slot) {
      const ipc::TimeSlice state = server.page.time_slice(slot);
      if (state == ipc::TimeSlice::in_force || (found != ipc::TimeSlice::in_force && state > found)) found = state;
    }
  }
  return found;
}

}  // namespace gpuctl::daemon
