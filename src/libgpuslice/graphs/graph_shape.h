// The shape of a graph, with nodes named by their numbers. Pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gpuslice {

struct GraphShape {
  std::vector<std::size_t> order;  ///< every node after all nodes that it depends on
  bool chain = true;               ///< the nodes form one sequence, so no two run at the same time
};

/// `edges`: from, to; both are below `nodes`. There are no cycles, as every driver ensures (nodes in a cycle are not in
/// `order`). Nodes that could come in any order keep the order of their numbers.
GraphShape shape_of(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace gpuslice
