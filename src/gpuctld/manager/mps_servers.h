// The MPS servers with libgpuslice inside: each has a stub page, from which it takes how long its turns are to last.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "gpuctld/clients/client.h"
#include "gpuctld/protocol/session.h"

namespace gpuctl::daemon {

class MpsServers {
 public:
  /// `page` has a slot for each device of the daemon, or for the first of them.
  void add(const Session& session, std::string mps, Client page) {
    pages_.insert_or_assign(&session, Server{std::move(mps), std::move(page)});
  }
  void leave(const Session& session) { pages_.erase(&session); }
  bool any(const std::string& mps) const;

  /// Writes what differs. `us`: of the MPS of that name (MpsPlaces), by device, as Grant::time_slice_us.
  void write(const std::string& mps, std::span<const std::uint32_t> us, std::uint64_t now_ns);
  /// What became of it, on any device: of several the one that tells most.
  ipc::TimeSlice work(const std::string& mps) const;

 private:
  struct Server {
    std::string mps;
    Client page;
  };
  std::map<const Session*, Server> pages_;
};

}  // namespace gpuctl::daemon
