#include "libgpuslice/graphs/graph_shape.h"

#include <functional>
#include <queue>

namespace gpuslice {

GraphShape shape_of(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  std::vector<std::vector<std::size_t>> dependents(nodes);
  std::vector<std::size_t> waits_for(nodes, 0);
  for (const auto& [from, to] : edges) {
    dependents[from].push_back(to);
    ++waits_for[to];
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (waits_for[node] == 0) ready.push(node);
  }
  GraphShape shape;
  while (!ready.empty()) {
    if (ready.size() > 1) shape.chain = false;
    const std::size_t node = ready.top();
    ready.pop();
    shape.order.push_back(node);
    for (const std::size_t dependent : dependents[node]) {
      if (--waits_for[dependent] == 0) ready.push(dependent);
    }
  }
  return shape;
}

}  // namespace gpuslice
