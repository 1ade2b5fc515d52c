// The daemon's configuration: a sound one or a list of problems that name the file.
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "gpuctld/config/config.h"

using gpuctl::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("config", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
          "a file can be written");
  const gpuctl::daemon::ConfigOutcome outcome = gpuctl::daemon::read_config(path, true);
  for (const std::string& problem : outcome.problems) {
    require(problem.starts_with(path + ":"), "a problem names the file");
  }
  for (const std::string& note : outcome.notes) require(note.starts_with(path + ":"), "a note names the file");
  return 0;
}
