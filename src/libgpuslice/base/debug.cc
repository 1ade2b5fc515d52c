#include "libgpuslice/base/debug.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "base/append_file.h"
#include "libgpuslice/base/environment.h"

namespace gpuslice {

namespace {

/// Never destroyed: threads write to it while the program ends.
gpuctl::AppendFile& debug_file() {
  static auto* file = new gpuctl::AppendFile(environment("GPUSLICE_DEBUG"));
  return *file;
}

}  // namespace

bool debugging() {
  return debug_file().wanted();
}

void debug(const char* format, ...) {
  const int file = debug_file().descriptor();
  if (file < 0) return;
  char line[1024];
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int used = std::snprintf(line, sizeof line, "%lld.%06ld %d/%ld ", static_cast<long long>(now.tv_sec),
                           now.tv_nsec / 1000, getpid(), syscall(SYS_gettid));
  va_list arguments;
  va_start(arguments, format);
  int more = std::vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  if (more < 0) return;
  used += more;
  if (used > static_cast<int>(sizeof line) - 2) used = sizeof line - 2;
  line[used++] = '\n';
  [[maybe_unused]] ssize_t written = write(file, line, used);
}

}  // namespace gpuslice
