// ioctl for the program and the driver: calls the C library's, and watches what the driver asks of /dev/nvidiactl.
//
// Every ioctl of the program comes here, also in signal handlers and forked children. So all but three requests are
// only passed on: no lock, no allocation, no further system call. Results and errno are always the C library's.
#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/timeslice/channels.h"
#include "libgpuslice/timeslice/mps_server.h"

namespace gpuslice {

namespace {

using Ioctl = int (*)(int, unsigned long, ...);

constinit std::atomic<Ioctl> g_next{nullptr};

/// The next ioctl in symbol order: the C library's, or one of another library that puts itself before the C library.
Ioctl next_ioctl() {
  Ioctl next = g_next.load(std::memory_order_relaxed);
  if (!next) {
    next = reinterpret_cast<Ioctl>(real_dlsym(RTLD_NEXT, "ioctl"));  // the same in every thread
    g_next.store(next, std::memory_order_relaxed);
  }
  return next;
}

/// Runs before a signal handler could be the first to need the function.
[[gnu::constructor]] void find_next_ioctl() {
  next_ioctl();
}

int call_next(int fd, unsigned long request, void* argument) {
  return next_ioctl()(fd, request, argument);
}

/// Recognises the device by its numbers, which Linux assigns to NVIDIA.
bool is_nvidiactl(int fd) {
  constexpr unsigned kMajor = 195, kMinor = 255;
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && major(status.st_rdev) == kMajor &&
         minor(status.st_rdev) == kMinor;
}

constinit ChannelGroups g_groups(call_next, is_nvidiactl);

}  // namespace

ChannelGroups& ChannelGroups::get() {
  return g_groups;
}

}  // namespace gpuslice

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);  // undefined if the caller passed none, as in the kernel
  va_end(arguments);
  const int result = gpuslice::next_ioctl()(fd, request, argument);
  const auto number = static_cast<std::uint32_t>(request);
  if (result != 0 || !gpuslice::concerns_channels(number)) return result;
  const int error = errno;
  gpuslice::ChannelGroups::get().saw(fd, number, argument);
  if (gpuslice::is_mps_server()) gpuslice::serve_turns();
  errno = error;
  return result;
}
