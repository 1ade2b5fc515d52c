#include "libgpuslice/driver/debug.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "libgpuslice/driver/environment.h"

namespace gpuslice {

namespace {

/// Below 0: there is no debug file.
int debug_file() {
  static const int file = [] {
    const char* path = environment("GPUSLICE_DEBUG");
    return path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  }();
  return file;
}

}  // namespace

bool debugging() {
  return debug_file() >= 0;
}

void debug(const char* format, ...) {
  const int file = debug_file();
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
