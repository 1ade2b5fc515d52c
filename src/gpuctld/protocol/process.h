// Processes, named so that another one that is given the same number is not mistaken for them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Where processes are looked up; tests have a directory of their own.
inline constexpr char kProc[] = "/proc";

struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start = 0;  ///< start_of(); 0: not known
  std::uint32_t uid = 0;    ///< the effective user when it connected
  bool operator==(const ProcessIdentity&) const = default;
};

/// When the process started, in clock ticks since boot; 0 if it does not exist. With its number this identifies a
/// process.
std::uint64_t start_of(std::int32_t pid, const std::string& proc = kProc);

/// The path of the process's cgroup in the tree of version 2; "": not known, or it is another process by now.
std::string unified_cgroup_of(const ProcessIdentity& process, const std::string& proc = kProc);

struct UserIds {
  std::uint32_t real = 0, effective = 0, saved = 0;
};
/// Empty if the process does not exist.
std::optional<UserIds> users_of(std::int32_t pid, const std::string& proc = kProc);

/// A pidfd of the process that has this number now.
ipc::UniqueFd open_pidfd(std::int32_t pid);

/// Whether the process of that pidfd has ended.
bool has_ended(int pidfd);

/// A pidfd of this very process: its start and its effective user are looked at before and after the pidfd is opened.
/// Empty if they differ, or if the process is gone.
ipc::UniqueFd pidfd_of(const ProcessIdentity& process, const std::string& proc = kProc,
                       const std::function<ipc::UniqueFd(std::int32_t)>& open = open_pidfd);

/// Whether a signal may be sent to a process for the user that it connected as: by the rule of kill(2), only if that
/// user could send it too. A process that now runs a set-uid program may belong to somebody else.
enum class MaySignal { yes, no, gone };
MaySignal may_signal(const ProcessIdentity& process, const std::string& proc = kProc);

}  // namespace gpuctl::daemon
