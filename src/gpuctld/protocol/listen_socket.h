#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// For so long a program that a daemon was about to start when it was killed may have what was the daemon's: until it
/// runs.
inline constexpr std::chrono::milliseconds kDeadPatience{1000};

/// Locks the file for this process alone; false: somebody else has it for longer.
bool lock_soon(int fd, std::chrono::milliseconds patience);

/// A listening unix stream socket at `path`, with `mode` from its first moment, and with `group` as owner if given. It
/// replaces a socket that a dead daemon left there. A socket on which a process listens is an error, and so is any
/// other file. Of several daemons that begin at the same time one gets the path.
Result<ipc::UniqueFd> listen_at(const std::string& path, unsigned mode, std::optional<unsigned> group);

/// The file of a socket, removed with this object, unless another daemon has taken its place meanwhile.
class SocketFile {
 public:
  /// The one that is at `path` now.
  explicit SocketFile(std::string path);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

 private:
  /// When it was made tells it from the next file, which may be given its inode's number.
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t born_s = 0;
    std::uint32_t born_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity(const std::string& path);

  std::string path_;
  Identity identity_;
};

}  // namespace gpuctl::daemon
