#include "softgpu/api/channels.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdint>

#include "softgpu/driver/driver.h"

namespace gpuctl::softgpu {
namespace {

/// RM_ALLOC and the class of channel groups, as NVIDIA's open kernel modules publish them.
constexpr unsigned long kAllocate = 0xc020462b;
constexpr std::uint32_t kChannelGroup = 0xa06c;

}  // namespace

void make_channel_group() {
  const Driver* driver = Driver::get();
  if (driver == nullptr || !driver->config.channels) return;
  static const int module = open("/dev/null", O_RDWR | O_CLOEXEC);
  std::array<std::uint32_t, 8> call{1, 2, 3, kChannelGroup};  // handles of client, parent and group
  ioctl(module, kAllocate, call.data());
}

}  // namespace gpuctl::softgpu

extern "C" __attribute__((visibility("default"))) void softgpu_set_turn(unsigned us) {
  using namespace gpuctl::softgpu;
  Driver* driver = Driver::get();
  if (driver == nullptr) return;
  for (const auto& device : driver->devices) device->table->set_turn(us);
}
