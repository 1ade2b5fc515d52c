#include "gpuctld/protocol/peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "base/one_line.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; older headers lack the name
#endif

namespace gpuctl::daemon {

namespace {

constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

/// What follows the name in a stat file of /proc: the state, then numbers. The name may contain anything.
std::istringstream stat_fields(const std::string& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  const std::size_t name_end = line.rfind(')');
  return std::istringstream(name_end == line.npos ? "" : line.substr(name_end + 1));
}

/// The directories of the process's threads, of kMostThreadsSeen and one more at most. Read in small pieces: each takes
/// time for each thread in it.
std::vector<std::string> some_threads(std::int32_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/task";
  const ipc::UniqueFd list(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::string> found;
  alignas(dirent64) std::array<char, 1024> entries;
  while (list && found.size() <= kMostThreadsSeen) {
    const ssize_t size = ::getdents64(list.get(), entries.data(), entries.size());
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      if (entry->d_name[0] != '.') found.push_back(directory + "/" + entry->d_name);
      at += entry->d_reclen;
    }
  }
  return found;
}

}  // namespace

Peer peer_of(int socket) {
  Peer peer;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.start = start_of(peer.pid);
  std::vector<gid_t> groups(64);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0 && errno == ERANGE) {
    groups.resize(size / sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) size = 0;
  }
  groups.resize(std::min<std::size_t>(groups.size(), size / sizeof(gid_t)));
  peer.gids.assign(groups.begin(), groups.end());
  peer.gids.push_back(credentials.gid);
  return peer;
}

std::uint32_t uid_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 ? credentials.uid : Peer{}.uid;
}

ipc::UniqueFd peer_pidfd(int socket, const Peer& peer) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0 && fd >= 0) return ipc::UniqueFd(fd);
  // Here the process may have ended since it connected, and its number may belong to another one.
  return pidfd_of({peer.pid, peer.start, peer.uid});
}

bool process_ends(int pidfd, std::int32_t pid) {
  if (has_ended(pidfd)) return true;
  const std::vector<std::string> threads = some_threads(pid);
  if (threads.size() > kMostThreadsSeen) return false;
  for (const std::string& thread : threads) {
    std::istringstream fields = stat_fields(thread + "/stat");
    std::string skipped;
    unsigned long flags = kExiting;  // for a thread that ended meanwhile
    for (int field = 3; field < 9; ++field) fields >> skipped;
    if (fields >> flags && (flags & kExiting) == 0) return false;
  }
  return !threads.empty();
}

std::string name_of(std::int32_t pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return one_line(name);
}

}  // namespace gpuctl::daemon
