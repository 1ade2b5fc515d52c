#include "libgpuslice/base/stage.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "ipc/unique_fd.h"
#include "libgpuslice/base/debug.h"

namespace gpuslice {

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

Clock::time_point g_loaded;

double ms_since_loaded() {
  return Milliseconds(Clock::now() - g_loaded).count();
}

/// Milliseconds since the process was forked; time before exec (`gpuctl run`) counts too. The system counts in ticks of
/// 10 ms.
double process_age_ms() {
  char text[1024];
  const gpuctl::ipc::UniqueFd file(open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? read(file.get(), text, sizeof text - 1) : -1;
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = std::strrchr(text, ')');  // the name in brackets may contain anything; fields 3 and on follow it
  for (int field = 2; at && field < 22; ++field) at = std::strchr(at + 1, ' ');
  if (!at) return 0;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double began_s = std::strtod(at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return (static_cast<double>(now.tv_sec) - began_s) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

__attribute__((constructor)) void loaded() {
  g_loaded = Clock::now();
  if (debugging())
    debug("start +0.000 ms: libgpuslice is loaded; the process began %.0f ms before, give or take 10",
          process_age_ms());
}

__attribute__((destructor)) void ends() {
  debug("start +%.3f ms: the program ends", ms_since_loaded());
}

}  // namespace

Stage::Stage(const char* what) : what_(debugging() ? what : nullptr) {
  if (!what_) return;
  begin_ = Clock::now();
  debug("start +%.3f ms: %s begins", ms_since_loaded(), what_);
}

Stage::~Stage() {
  if (what_)
    debug("start +%.3f ms: %s ends, %.3f ms", ms_since_loaded(), what_, Milliseconds(Clock::now() - begin_).count());
}

}  // namespace gpuslice
