#include "softgpu/graph/graphs.h"

namespace gpuctl::softgpu {

CUgraphNode Graphs::add_node(const std::shared_ptr<Node>& node) {
  if (const auto* child = std::get_if<ChildWork>(&node->work)) add_graph(child->graph);
  return nodes.add(node);
}

void Graphs::remove_node(const std::shared_ptr<Node>& node) {
  if (const auto* child = std::get_if<ChildWork>(&node->work)) destroy_graph(child->graph);
  nodes.remove(reinterpret_cast<CUgraphNode>(node.get()));
}

CUgraph Graphs::add_graph(const std::shared_ptr<Graph>& graph) {
  for (const auto& node : graph->nodes()) add_node(node);
  return graphs.add(graph);
}

void Graphs::destroy_graph(const std::shared_ptr<Graph>& graph) {
  for (const auto& node : graph->nodes()) remove_node(node);
  graphs.remove(reinterpret_cast<CUgraph>(graph.get()));
}

}  // namespace gpuctl::softgpu
