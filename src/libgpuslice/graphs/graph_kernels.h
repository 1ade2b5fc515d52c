// The kernels of a graph of the program, and which of them may run in persistent form.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "libgpuslice/kernels/kernels.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

/// One kernel node, with its parameters as they were when the graph was looked at.
struct GraphKernel {
  CUgraphNode node = nullptr;               ///< of the program's graph, or of a child graph in it
  std::vector<CUgraphNode> inside;          ///< the child graph nodes it is in, outermost first
  std::shared_ptr<KernelInfo> kernel;       ///< null: not known here
  const char* not_in_this_graph = nullptr;  ///< why its place in the graph keeps it in its original form

  // What is launched: read_params().
  CUDA_KERNEL_NODE_PARAMS original{};  ///< but for the parameters
  Instance* instance = nullptr;        ///< null: original form
  LaunchConfig config{};
  std::vector<std::byte> values;  ///< the parameter block of the persistent form, where there is an instance

  bool enabled = true;
  bool rewritten = false;  ///< in the executable graph it is in persistent form now
};

struct GraphKernels {
  std::vector<GraphKernel> kernels;  ///< in an order in which they may run
  bool chain = true;                 ///< no two nodes of any kind could run at once
  const char* refused = nullptr;     ///< why all of them stay in their original form
};

/// Looks at a graph of the program; `uses_priorities`: node priorities count. The context must be current.
GraphKernels look_at_graph(CUgraph graph, bool uses_priorities);

/// What the program wants to launch at a node. Fills what follows `original`; the program may have another kernel there
/// than before. The context must be current.
void read_params(const CUDA_KERNEL_NODE_PARAMS& params, GraphKernel& out);

}  // namespace gpuslice
