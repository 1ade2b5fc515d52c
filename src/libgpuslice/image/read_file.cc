#include "libgpuslice/image/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/read_write.h"
#include "ipc/unique_fd.h"

namespace gpuslice {

std::optional<std::string> read_file(const char* path, std::size_t most_bytes) {
  const gpuctl::ipc::UniqueFd file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (!file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<std::size_t>(about.st_size) > most_bytes)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  if (!gpuctl::read_exactly(file.get(), bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

}  // namespace gpuslice
