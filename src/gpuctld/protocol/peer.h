// The process at the other end of a unix socket, as the kernel reports it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpuctld/protocol/process.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

struct Peer {
  std::int32_t pid = 0;  ///< of the process that connected
  std::uint32_t uid = 0xffffffff;
  std::uint64_t start = 0;  ///< of the process that had this number when the connection was accepted (process.h)
  std::vector<std::uint32_t> gids;  ///< primary and supplementary
};

/// Credentials from the time of connect(2). Unknown ones stay at "nobody".
Peer peer_of(int socket);
/// Peer::uid alone.
std::uint32_t uid_of(int socket);

/// A pidfd of the process that connected: readable when it has ended. Empty if there is none that is surely its own.
ipc::UniqueFd peer_pidfd(int socket, const Peer& peer);

/// Whether the process behind the pidfd has ended or is about to end: none of its threads runs its code any more. The
/// kernel closes the connections of a process before its pidfd shows the end, and what it closes in between may take
/// long. A process with more than kMostThreadsSeen threads left does not count as ending until it has ended.
bool process_ends(int pidfd, std::int32_t pid);

inline constexpr std::size_t kMostThreadsSeen = 64;

/// The process's name. Its command line is not read: that waits while the process changes its memory.
std::string name_of(std::int32_t pid);

}  // namespace gpuctl::daemon
