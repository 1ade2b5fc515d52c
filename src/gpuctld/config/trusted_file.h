// Files that only root or the daemon's own user can have made. What another user wrote must not steer the daemon.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace gpuctl::daemon {

/// Whether the user may be believed: root, or the daemon's own user `own`.
inline bool is_trusted(uid_t uid, uid_t own) {
  return uid == 0 || uid == own;
}

/// Which users may be able to write to a trusted file.
enum class Writers { owner, all };

/// The content of a regular file of at most `most` bytes whose owner is trusted. Empty if there is no such file. Never
/// waits for another process, and follows no symbolic link. An error names the file; then what is in it is unknown, so
/// it must not be overwritten.
Result<std::optional<std::string>> read_trusted_file(const std::string& file, Writers writers, uid_t own,
                                                     std::size_t most);

/// An error unless `path` is a directory that a trusted user owns and nobody else may write to. A symbolic link there
/// must belong to a trusted user too.
Result<void> check_trusted_directory(const std::string& path, uid_t own);

}  // namespace gpuctl::daemon
