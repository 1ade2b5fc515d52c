// A file inside other people's processes, to which lines are appended. The program may close its descriptor, and the
// number may then be that of a file of the program.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>

namespace gpuctl {

/// Any thread; no call throws.
class AppendFile {
 public:
  /// Opens the file and makes it if it is not there. Null or empty: there is none.
  explicit AppendFile(const char* path) noexcept {
    try {
      if (path == nullptr || *path == '\0') return;
      path_ = std::filesystem::absolute(path);
      open_file();
    } catch (...) {  // no memory, or no directory to start from: there is no file
    }
  }

  bool wanted() const { return number_.load(std::memory_order_relaxed) >= 0; }

  /// Its descriptor; below 0: there is none. Opens the file again where the program has closed it.
  int descriptor() noexcept {
    const int number = number_;
    if (number < 0) return -1;
    struct stat now {};
    if (::fstat(number, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) return number;
    return open_file();
  }

 private:
  int open_file() noexcept {
    const int number = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat opened {};
    if (number < 0 || ::fstat(number, &opened) != 0) return -1;
    device_ = opened.st_dev;
    inode_ = opened.st_ino;
    number_ = number;
    return number;
  }

  std::string path_;  ///< absolute, since the program may change its directory
  std::atomic<int> number_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

}  // namespace gpuctl
