// Memory that executable graphs allocate when they are launched (memory nodes), against the limits of held_memory.h. It
// counts from the launch on until the driver gives it back: it keeps what graphs have allocated for other graphs.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "libgpuslice/base/graph_memory.h"
#include "libgpuslice/client/held_memory.h"

namespace gpuslice {

/// Called after `graph` was instantiated as `exec`. May throw.
void note_allocations(CUgraphExec exec, CUgraph graph);
/// What graphs hold of a device, as the driver says. Where it does not say, what is known of it.
std::uint64_t held_by_graphs(CUdevice device);

/// Makes the driver's call that launches the graph, if the memory that it allocates may be held.
template <class Call>
CUresult counted_launch(CUgraphExec exec, Call call) {
  const GraphMemory::Need need = GraphMemory::get().any() ? GraphMemory::get().find(exec) : GraphMemory::Need{};
  if (need.bytes == 0) return call();
  HeldMemory& held = HeldMemory::get();
  if (!held.take_for_graphs(need.device, std::max(held_by_graphs(need.device), need.bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call();
  // The driver may allocate later than in the call.
  const std::uint64_t least = result == CUDA_SUCCESS ? need.bytes : 0;
  held.set_graphs(need.device, std::max(held_by_graphs(need.device), least));
  return result;
}

}  // namespace gpuslice
