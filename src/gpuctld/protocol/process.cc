#include "gpuctld/protocol/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace gpuctl::daemon {

std::uint64_t start_of(std::int32_t pid, const std::string& proc) {
  std::string line;
  // That of its first thread: that of the process adds up all threads, and their number is the process's choice.
  const std::string number = std::to_string(pid);
  std::getline(std::ifstream(proc + "/" + number + "/task/" + number + "/stat"), line);
  const std::size_t name_end = line.rfind(')');  // the name may contain anything
  std::istringstream fields(name_end == line.npos ? "" : line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

std::string unified_cgroup_of(const ProcessIdentity& process, const std::string& proc) {
  constexpr std::string_view kTree = "0::";
  std::ifstream file(proc + "/" + std::to_string(process.pid) + "/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with(kTree)) continue;
  const bool is_it = file && process.start != 0 && start_of(process.pid, proc) == process.start;
  return is_it ? line.substr(kTree.size()) : std::string();
}

std::optional<UserIds> users_of(std::int32_t pid, const std::string& proc) {
  std::ifstream status(proc + "/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream fields(line.substr(4));
    UserIds users;
    if (fields >> users.real >> users.effective >> users.saved) return users;
    break;
  }
  return std::nullopt;
}

ipc::UniqueFd open_pidfd(std::int32_t pid) {
  return ipc::UniqueFd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
}

bool has_ended(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0 && (ended.revents & POLLIN) != 0;
}

ipc::UniqueFd pidfd_of(const ProcessIdentity& process, const std::string& proc,
                       const std::function<ipc::UniqueFd(std::int32_t)>& open) {
  const auto is_it = [&] {
    const std::uint64_t start = start_of(process.pid, proc);
    const auto users = users_of(process.pid, proc);
    return start != 0 && start == process.start && users && users->effective == process.uid;
  };
  if (!is_it()) return {};
  ipc::UniqueFd pidfd = open(process.pid);
  if (!is_it()) return {};
  return pidfd;
}

MaySignal may_signal(const ProcessIdentity& process, const std::string& proc) {
  const auto users = users_of(process.pid, proc);
  if (!users || start_of(process.pid, proc) != process.start) return MaySignal::gone;
  const bool may = process.uid == 0 || process.uid == users->real || process.uid == users->saved;
  return may ? MaySignal::yes : MaySignal::no;
}

}  // namespace gpuctl::daemon
