// Shared by everything that runs on the devices, of any context or graph.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "softgpu/code/module.h"
#include "softgpu/device/config.h"
#include "softgpu/device/device.h"
#include "softgpu/host/activity.h"
#include "softgpu/host/doorbell.h"
#include "softgpu/host/registry.h"
#include "softgpu/memory/device_memory.h"

namespace gpuctl::softgpu {

class Machine {
 public:
  /// A device that CUDA_VISIBLE_DEVICES names.
  struct SeenDevice {
    std::size_t number = 0;
    std::unique_ptr<Table> table;
  };

  Machine(Config settings, std::vector<SeenDevice> seen);

  /// The device of that number, or nullptr.
  Device* device(CUdevice ordinal) const;

  /// The function behind a CUfunction. The handle may also be a CUkernel cast to CUfunction; then it is the kernel's
  /// function on that device.
  std::shared_ptr<Function> function(CUfunction handle, const Device& device) const;

  /// Appends a line to the file that SOFTGPU_DEBUG names, if it does.
  static void debug(const std::string& line);

  const Config config;
  Memory memory;
  Activity activity;
  const std::vector<std::unique_ptr<Device>> devices;  ///< the devices that the program sees, in its order
  Doorbell doorbell;
  Registry<CUfunction, Function> functions;
  Registry<CUkernel, Kernel> kernels;

 private:
  static std::vector<std::size_t> memory_of(const Config& config, const std::vector<SeenDevice>& seen);
  std::vector<std::unique_ptr<Device>> make_devices(std::vector<SeenDevice> seen);
};

}  // namespace gpuctl::softgpu
