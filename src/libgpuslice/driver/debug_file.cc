#include "libgpuslice/driver/debug_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "libgpuslice/driver/nothrow.h"

namespace gpuslice {

DebugFile::DebugFile(const char* path) noexcept {
  if (path == nullptr || *path == '\0') return;
  const bool known = nothrow(
      [&] {
        path_ = std::filesystem::absolute(path);
        return true;
      },
      false);
  if (known) open_file();
}

int DebugFile::open_file() noexcept {
  const int number = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat opened {};
  if (number < 0 || fstat(number, &opened) != 0) return -1;
  device_ = opened.st_dev;
  inode_ = opened.st_ino;
  number_ = number;
  return number;
}

int DebugFile::descriptor() noexcept {
  const int number = number_;
  if (number < 0) return -1;
  struct stat now {};
  if (fstat(number, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) return number;
  return open_file();
}

}  // namespace gpuslice
