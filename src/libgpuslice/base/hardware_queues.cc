#include "libgpuslice/base/hardware_queues.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/environment.h"

namespace gpuslice {

namespace {

constexpr unsigned kUsual = 8, kMost = 32;
std::atomic<unsigned> g_said{0};

/// False also for a driver that does not know what that is.
bool under_mps() {
  int value = 0;
  return driver().cuDeviceGetAttribute &&
         driver().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0) == CUDA_SUCCESS && value != 0;
}

}  // namespace

unsigned own_hardware_queues() {
  const char* own = environment(kHardwareQueues);
  const int number = own ? std::atoi(own) : 0;
  return number > 0 ? std::min(static_cast<unsigned>(number), kMost) : 0;
}

void set_hardware_queues(unsigned queues) {
  g_said = queues;
}

/// Where neither gpuctld nor the program says a number, the driver makes 2 under MPS and 8 otherwise
/// (docs/engineering-notes.md, "Facts about the GPU").
unsigned hardware_queues() {
  static const unsigned queues = [] {
    if (const unsigned said = g_said) return said;
    if (const unsigned own = own_hardware_queues()) return own;
    return under_mps() ? kUsualUnderMps : kUsual;
  }();
  return queues;
}

}  // namespace gpuslice
