// One device of the software GPU as this process sees it: its identity, and the table and threads that run its kernels.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

#include "softgpu/device/executor.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {

class Device {
 public:
  /// `ordinal` is the device's number in this process, `number` its number on the machine. `activity` must outlive it.
  Device(int ordinal, std::size_t number, std::unique_ptr<Table> shared, Activity& activity,
         std::uint64_t warp_instruction_ns)
      : ordinal(ordinal), number(number), table(std::move(shared)), executor(*table, activity, warp_instruction_ns) {}

  const int ordinal;
  const std::size_t number;
  const std::unique_ptr<Table> table;
  Executor executor;
};

/// The UUID of a device of the machine: the same in every process.
CUuuid device_uuid(std::size_t number);
/// "GPU-", hexadecimal digits and dashes.
std::string device_uuid_text(std::size_t number);
/// "0000:00:00.0"
std::string pci_bus_id(std::size_t number);

}  // namespace gpuctl::softgpu
