#include "gpuctld/config/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/read_write.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

Error system_error(const std::string& path) {
  return fail(path + ": cannot be read: " + std::strerror(errno));
}

Error not_trusted(const std::string& path, const struct stat& status) {
  return fail(path + ": belongs to user " + std::to_string(status.st_uid) + " and is not trusted");
}

Error writable(const std::string& path) {
  return fail(path + ": other users may write to it, so it is not trusted");
}

}  // namespace

Result<std::optional<std::string>> read_trusted_file(const std::string& file, Writers writers, uid_t own,
                                                     std::size_t most) {
  const ipc::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return std::optional<std::string>();
    if (errno == ELOOP) return fail(file + ": is a symbolic link, not a regular file");
    return system_error(file);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error(file);
  if (!S_ISREG(status.st_mode)) return fail(file + ": is not a regular file");
  if (!is_trusted(status.st_uid, own)) return not_trusted(file, status);
  if (writers == Writers::owner && (status.st_mode & kOthersMayWrite) != 0) return writable(file);
  std::string text;
  const ReadEnd end = read_pieces(fd.get(), [&](std::string_view piece) { return (text += piece).size() <= most; });
  if (end == ReadEnd::stopped) return fail(file + ": is longer than " + std::to_string(most) + " bytes");
  if (end != ReadEnd::end) return system_error(file);
  return std::optional(std::move(text));
}

Result<void> check_trusted_directory(const std::string& path, uid_t own) {
  struct stat link {
  }, status{};
  if (::lstat(path.c_str(), &link) != 0 || ::stat(path.c_str(), &status) != 0) return system_error(path);
  if (!is_trusted(link.st_uid, own)) return not_trusted(path, link);
  if (!is_trusted(status.st_uid, own)) return not_trusted(path, status);
  if (!S_ISDIR(status.st_mode)) return fail(path + ": is not a directory");
  if ((status.st_mode & kOthersMayWrite) != 0) return writable(path);
  return {};
}

}  // namespace gpuctl::daemon
