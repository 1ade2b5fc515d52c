#include <algorithm>
#include <cstdlib>

#include "libgpuslice/context.h"

namespace gpuslice {

namespace {

constexpr unsigned kUsual = 8, kMost = 32;

}  // namespace

/// What the variable says, as the driver reads it; `gpuctl run` sets it. Without it the driver makes 8, but 2 under MPS
/// (measured: docs/measurements.md): programs that link the library and find no such variable are taken not to be.
unsigned hardware_queues() {
  static const unsigned queues = [] {
    const char* asked = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int number = asked ? std::atoi(asked) : 0;
    return number > 0 ? std::min(static_cast<unsigned>(number), kMost) : kUsual;
  }();
  return queues;
}

}  // namespace gpuslice
