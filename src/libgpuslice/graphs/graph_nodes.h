// The nodes of a graph of the program, as the driver lists them.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

/// None: the driver does not say. It must have cuGraphGetNodes.
inline std::optional<std::vector<CUgraphNode>> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  if (driver().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return std::nullopt;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && driver().cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return std::nullopt;
  return nodes;
}

}  // namespace gpuslice
