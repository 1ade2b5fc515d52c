#include <algorithm>
#include <cstdlib>

#include "libgpuslice/driver/hardware_queues.h"
#include "libgpuslice/process/environment.h"

namespace gpuslice {

namespace {

constexpr unsigned kUsual = 8, kMost = 32;

}  // namespace

/// What CUDA_DEVICE_MAX_CONNECTIONS says, as the driver reads it. Under MPS `gpuctl run` sets that variable, or says in
/// GPUSLICE_HARDWARE_QUEUES that the driver makes 2 queues there. Otherwise the driver makes 8 (docs/measurements.md,
/// "Facts about the GPU"). A program that links the library and finds neither variable is assumed not to run under MPS.
unsigned hardware_queues() {
  static const unsigned queues = [] {
    const char* asked = environment("CUDA_DEVICE_MAX_CONNECTIONS");
    if (!asked) asked = environment("GPUSLICE_HARDWARE_QUEUES");
    const int number = asked ? std::atoi(asked) : 0;
    return number > 0 ? std::min(static_cast<unsigned>(number), kMost) : kUsual;
  }();
  return queues;
}

}  // namespace gpuslice
