#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// A listening unix stream socket at `path`, with `mode` from its first moment and `group` as owner if given. The
/// socket that a dead daemon left there is replaced; one that somebody listens on is an error, and so is any other
/// file.
Result<ipc::UniqueFd> listen_at(const std::string& path, unsigned mode, std::optional<unsigned> group);

}  // namespace gpuctl::daemon
