// The MPS servers with libgpuslice inside: each has a stub page, from which it takes how long its turns are to last.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "gpuctld/clients/client.h"
#include "gpuctld/protocol/session.h"

namespace gpuctl::daemon {

class MpsServers {
 public:
  /// `page` has a slot for each device of the daemon, or for the first of them.
  void add(const Session& session, Client page) { pages_.insert_or_assign(&session, std::move(page)); }
  void leave(const Session& session) { pages_.erase(&session); }
  bool empty() const { return pages_.empty(); }

  /// Writes what differs. `us`: by device, as Grant::time_slice_us.
  void write(std::span<const std::uint32_t> us, std::uint64_t now_ns);
  /// What became of it, on any device: of several the one that tells most.
  ipc::TimeSlice work() const;

 private:
  std::map<const Session*, Client> pages_;
};

}  // namespace gpuctl::daemon
