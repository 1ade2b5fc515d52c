// The shape of a graph, by the numbers of its nodes: pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gpuslice {

struct GraphShape {
  std::vector<std::size_t> order;  ///< every node behind all those it depends on
  bool chain = true;               ///< one node after the other: there is no other order, and no two run at once
};

/// `edges`: from, to; both below `nodes`, no circles, as every driver sees to (what is in a circle is not in `order`).
/// Nodes that could come in any order keep that of their numbers.
GraphShape shape_of(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace gpuslice
