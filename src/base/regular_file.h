// Files that a user names. Whoever opens a FIFO waits, a device may be read without end, and opening either may do
// something, so nothing but a regular file is read, and no more of it than the caller can use.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/read_write.h"
#include "base/result.h"

namespace gpuctl {

/// A regular file, open for reading. Opening it waits for no other process.
class RegularFile {
 public:
  /// `flags`: more of open(2), such as O_NOFOLLOW.
  explicit RegularFile(std::string path, int flags = 0)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags)) {
    if (fd_ < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0)
      problem_ = "is a symbolic link, not a regular file";
    else if (fd_ < 0 && errno != ENXIO)  // of a socket
      missing_ = errno == ENOENT, problem_ = cannot_be_read();
    else if (fd_ < 0 || ::fstat(fd_, &status_) != 0 || !S_ISREG(status_.st_mode))
      problem_ = "is not a regular file";
  }
  ~RegularFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  /// Whether there is no file of that name.
  bool missing() const { return missing_; }
  /// The error names the file.
  Result<void> opened() const {
    if (!problem_.empty()) return fail(path_ + ": " + problem_);
    return {};
  }
  /// Once it is opened.
  const struct stat& status() const { return status_; }
  int fd() const { return fd_; }

  /// All of it, if it has at most `most` bytes.
  Result<std::string> read(std::size_t most) const {
    if (const auto open = opened(); !open) return open.error();
    std::string text;
    const ReadEnd end = read_pieces(fd_, [&](std::string_view piece) { return (text += piece).size() <= most; });
    if (end == ReadEnd::stopped) return fail(path_ + ": is longer than " + std::to_string(most) + " bytes");
    if (end != ReadEnd::end) return fail(path_ + ": " + cannot_be_read());
    return text;
  }

 private:
  static std::string cannot_be_read() { return std::string("cannot be read: ") + std::strerror(errno); }

  std::string path_;
  int fd_;
  struct stat status_ {};
  bool missing_ = false;
  std::string problem_;  ///< empty: it is opened
};

/// The content of a regular file of at most `most` bytes.
inline Result<std::string> read_regular_file(const std::string& path, std::size_t most) {
  return RegularFile(path).read(most);
}

/// Whether that is /dev/null, or leads there: who names it in place of a file means an empty one.
inline bool is_null_device(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

}  // namespace gpuctl
