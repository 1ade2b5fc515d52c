// cuCheckpointProcess*: a thread of the process carries out what any process orders (Table::give_order). The memory of
// a device is memory of the process anyway, so a checkpoint only lets others have as much.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

class Driver;

/// The process takes orders from now on, unless the system has no thread left.
void obey_orders(Driver& driver);

/// Has the process of that pid carry out an order. It must have initialised the driver, as the caller.
CUresult order_process(int pid, Order order, std::uint32_t within_ms = 0);

/// The state of the process of that pid.
CUresult state_of_process(int pid, CUprocessState& state);

}  // namespace gpuctl::softgpu
