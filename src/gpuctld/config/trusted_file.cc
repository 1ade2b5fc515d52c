#include "gpuctld/config/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/regular_file.h"

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
  const RegularFile in(file, O_NOFOLLOW);
  if (in.missing()) return std::optional<std::string>();
  if (const auto opened = in.opened(); !opened) return opened.error();
  if (!is_trusted(in.status().st_uid, own)) return not_trusted(file, in.status());
  if (writers == Writers::owner && (in.status().st_mode & kOthersMayWrite) != 0) return writable(file);
  auto text = in.read(most);
  if (!text) return text.error();
  return std::optional(std::move(*text));
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
