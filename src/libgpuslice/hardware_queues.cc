#include <algorithm>
#include <cstdlib>

#include "libgpuslice/context.h"

namespace gpuslice {

/// What the variable says, as the driver reads it; without it the driver makes 8, under MPS 2 (measured:
/// docs/measurements.md).
unsigned hardware_queues() {
  static const unsigned queues = [] {
    const char* asked = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int number = asked ? std::atoi(asked) : 0;
    return number > 0 ? static_cast<unsigned>(std::min(number, 32)) : 2u;
  }();
  return queues;
}

}  // namespace gpuslice
