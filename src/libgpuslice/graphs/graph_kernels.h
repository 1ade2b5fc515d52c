// The kernels of a graph of the program, and which of them may run in persistent form.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

/// One kernel node, with its parameters at the time when the graph was read.
struct GraphKernel {
  CUgraphNode node = nullptr;               ///< in the program's graph, or in a child graph of it
  std::vector<CUgraphNode> inside;          ///< the child graph nodes that contain it, outermost first
  std::shared_ptr<KernelInfo> kernel;       ///< null: unknown
  const char* not_in_this_graph = nullptr;  ///< why its place in the graph keeps it in its original form

  // What is launched, as read_params() reads it.
  CUDA_KERNEL_NODE_PARAMS original{};  ///< without the parameters' values
  Instance* instance = nullptr;        ///< null: original form
  LaunchConfig config{};
  std::vector<std::byte> values;  ///< parameter block of the persistent form, if there is an instance

  bool enabled = true;
  bool rewritten = false;  ///< it is in persistent form in the executable graph now
};

struct GraphKernels {
  std::vector<GraphKernel> kernels;  ///< in an order in which they may run
  bool chain = true;                 ///< no two nodes of any kind can run at the same time
  const char* refused = nullptr;     ///< why all kernels stay in original form; null: they need not
  bool may_wait = false;             ///< for what the GPU does not do by itself (waiting_streams.h)
  std::uint64_t cluster = 1;         ///< blocks of the largest clusters
  std::uint32_t least = 0;           ///< fewest SMs of a part of the GPU for a copy of it (whole_grid.h)
  /// Why it can have no copy in a part of the GPU (confined_graph.h), as a text that lives forever; null: it may.
  const char* not_in_part = nullptr;

  /// Nothing is known of a part of it.
  void cannot_be_read(const char* why) {
    refused = not_in_part = why;
    may_wait = true;
  }
};

/// Whether node priorities count in a graph that is instantiated with these flags.
constexpr bool uses_node_priorities(unsigned long long flags) {
  return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
}

/// Reads a graph of the program. `uses_priorities`: node priorities count. The context must be current.
GraphKernels look_at_graph(CUgraph graph, bool uses_priorities);

/// Reads what the program wants to launch at a node. Fills `kernel`, which may be another one than before, and the
/// members from `original` to `values`. The context must be current.
void read_params(const CUDA_KERNEL_NODE_PARAMS& params, GraphKernel& out);

}  // namespace gpuslice
