// The file of GPUSLICE_DEBUG, which the program may close. Its number may then be that of a file of the program.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>

namespace gpuslice {

/// Any thread; no call throws.
class DebugFile {
 public:
  /// Opens the file and makes it if it is not there. Null or empty: there is none.
  explicit DebugFile(const char* path) noexcept;

  bool wanted() const { return number_.load(std::memory_order_relaxed) >= 0; }
  /// Its descriptor, to append to; below 0: there is none. Opens the file again where the program has closed it.
  int descriptor() noexcept;

 private:
  int open_file() noexcept;

  std::string path_;  ///< absolute, since the program may change its directory
  std::atomic<int> number_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

}  // namespace gpuslice
