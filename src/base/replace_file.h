// A file that takes the place of the one before it in one step.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/read_write.h"

namespace gpuctl {

/// Why a file could not be written.
struct NotWritten {
  std::string file;  ///< that failed: the one wanted, or the unfinished one
  int error = 0;     ///< errno
};

/// Makes `file` one with this text: whoever opens it finds the one before or all of this, after a crash too. It is made
/// as `unfinished`, in the same directory; what has that name goes, and what a link of that name leads to stays.
/// `mode`: its permissions, whatever the umask; without it the usual ones.
inline std::optional<NotWritten> replace_file(const std::string& file, std::string_view text,
                                              const std::string& unfinished, std::optional<mode_t> mode = {}) {
  ::unlink(unfinished.c_str());
  const int opened = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode.value_or(0666));
  if (opened < 0) return NotWritten{unfinished, errno};
  const bool whole = write_all(opened, text) && (!mode || ::fchmod(opened, *mode) == 0) && ::fsync(opened) == 0;
  int error = errno;
  ::close(opened);
  if (whole && ::rename(unfinished.c_str(), file.c_str()) == 0) return std::nullopt;
  if (whole) error = errno;
  ::unlink(unfinished.c_str());
  return NotWritten{file, error};
}

}  // namespace gpuctl
