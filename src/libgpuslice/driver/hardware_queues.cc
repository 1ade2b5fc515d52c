#include <algorithm>
#include <cstdlib>

#include "libgpuslice/driver/hardware_queues.h"

namespace gpuslice {

namespace {

constexpr unsigned kUsual = 8, kMost = 32;

}  // namespace

/// What the variable says, as the driver reads it; `gpuctl run` sets it under MPS, or says in another one that the
/// driver makes 2 there. Else it makes 8 (measured: docs/measurements.md): programs that link the library and find
/// neither are taken not to be under MPS.
unsigned hardware_queues() {
  static const unsigned queues = [] {
    const char* asked = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (!asked) asked = std::getenv("GPUSLICE_HARDWARE_QUEUES");
    const int number = asked ? std::atoi(asked) : 0;
    return number > 0 ? std::min(static_cast<unsigned>(number), kMost) : kUsual;
  }();
  return queues;
}

}  // namespace gpuslice
