// All graphs of the process, those that are being captured and what they have allocated.
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

  /// Makes a node known, with the child graph in it. Needs graph_mutex, as everything about graphs.
  CUgraphNode add_node(const std::shared_ptr<Node>& node);
  void remove_node(const std::shared_ptr<Node>& node);

  /// Makes a graph and its nodes known.
  CUgraph add_graph(const std::shared_ptr<Graph>& graph);

  /// Makes a graph and its nodes unknown; what is instantiated of it goes on.
  void destroy_graph(const std::shared_ptr<Graph>& graph);

  std::mutex graph_mutex;  ///< guards captures, graphs and executable graphs, which programs may not use in parallel
  Captures captures{*this};
  GraphMemories graph_memories{memory};
  Registry<CUgraph, Graph> graphs;
  Registry<CUgraphNode, Node> nodes;
  Registry<CUgraphExec, GraphExec> graph_execs;
};

}  // namespace gpuctl::softgpu
