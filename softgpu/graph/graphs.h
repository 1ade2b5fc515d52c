// All graphs of the process, the captures under way, and the memory of graphs.
#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>

#include "softgpu/contexts/machine.h"
#include "softgpu/graph/capture.h"
#include "softgpu/graph/exec.h"
#include "softgpu/graph/graph.h"
#include "softgpu/graph/memory.h"
#include "softgpu/host/registry.h"

namespace gpuctl::softgpu {

class Graphs : public Machine {
 public:
  using Machine::Machine;

  /// Registers a node, and the child graph in it. Needs graph_mutex, as everything about graphs does.
  CUgraphNode add_node(const std::shared_ptr<Node>& node);
  void remove_node(const std::shared_ptr<Node>& node);

  /// Registers a graph and its nodes.
  CUgraph add_graph(const std::shared_ptr<Graph>& graph);

  /// Removes a graph and its nodes from the registries; executable graphs made from it go on.
  void destroy_graph(const std::shared_ptr<Graph>& graph);

  std::mutex graph_mutex;  ///< guards captures, graphs and executable graphs, which programs may not use in parallel
  Captures captures{*this};
  GraphMemories graph_memories{memory};
  Registry<CUgraph, Graph> graphs;
  Registry<CUgraphNode, Node> nodes;
  Registry<CUgraphExec, GraphExec> graph_execs;
};

}  // namespace gpuctl::softgpu
