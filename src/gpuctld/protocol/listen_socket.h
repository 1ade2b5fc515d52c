#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// A listening unix stream socket at `path`, with `mode` from its first moment, and with `group` as owner if given. It
/// replaces a socket that a dead daemon left there. A socket on which a process listens is an error, and so is any
/// other file.
Result<ipc::UniqueFd> listen_at(const std::string& path, unsigned mode, std::optional<unsigned> group);

}  // namespace gpuctl::daemon
