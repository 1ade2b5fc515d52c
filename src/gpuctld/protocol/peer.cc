#include "gpuctld/protocol/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; older headers lack the name
#endif

namespace gpuctl::daemon {

namespace {

constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

/// What follows the name in a stat file of /proc: the state, then numbers. The name may contain anything.
std::istringstream stat_fields(const std::filesystem::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  const std::size_t name_end = line.rfind(')');
  return std::istringstream(name_end == line.npos ? "" : line.substr(name_end + 1));
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
  pollfd ended{pidfd, POLLIN, 0};
  if (::poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0) return true;
  std::error_code unreadable;
  std::size_t threads = 0;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/task", unreadable), end; at != end;
       at.increment(unreadable)) {
    std::istringstream fields = stat_fields(at->path() / "stat");
    std::string skipped;
    unsigned long flags = kExiting;  // for a thread that ended meanwhile
    for (int field = 3; field < 9; ++field) fields >> skipped;
    if (fields >> flags && (flags & kExiting) == 0) return false;
    ++threads;
  }
  return !unreadable && threads > 0;
}

std::string command_of(std::int32_t pid) {
  constexpr std::streamsize kLongest = 256;
  const std::string directory = "/proc/" + std::to_string(pid);
  std::string command(static_cast<std::size_t>(kLongest), '\0');
  std::ifstream file(directory + "/cmdline", std::ios::binary);
  file.read(command.data(), kLongest);
  command.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  if (command.empty()) std::getline(std::ifstream(directory + "/comm"), command);
  std::replace_if(
      command.begin(), command.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return command;
}

}  // namespace gpuctl::daemon
