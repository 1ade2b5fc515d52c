// Graphs as programs build them: nodes and the order between them. Nothing here runs.
//
// The handles of nodes and graphs are their addresses; the registries of the driver know which are valid. All functions
// need Graphs::graph_mutex.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/graph/work.h"

namespace gpuctl::softgpu {

class GraphExec;

struct Node {
  Graph* graph = nullptr;
  std::uint64_t id = 0;      ///< unique in this process, for ever
  std::uint64_t origin = 0;  ///< id of the node this one was cloned from, or 0
  Context* context = nullptr;
  Work work;
  std::vector<Node*> dependencies;  ///< in the order in which they were added; no duplicates
  std::vector<Node*> dependents;

  /// The parameters that cuGraphKernelNodeGetParams returns; valid until the parameters change.
  struct Shown {
    std::vector<void*> values;
    std::size_t bytes = 0;
    void* extra[5] = {};
  } shown;
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

  /// The node that holds this graph as its child, or nullptr.
  Node* parent() const { return parent_; }
  void set_parent(Node* node) { parent_ = node; }

  /// Adds a node at the end of nodes(). `after` must be nodes of this graph without duplicates. The node owns a child
  /// graph in `work` from now on.
  std::shared_ptr<Node> add(Context* context, Work work, const std::vector<Node*>& after);

  /// Removes a node and all edges to and from it.
  void remove(Node& node);

  static bool has_edge(const Node& from, const Node& to);
  static void add_edge(Node& from, Node& to);
  static void remove_edge(Node& from, Node& to);

  /// A copy with copies of child graphs; each node's `origin` is the id of the node it was made from.
  std::shared_ptr<Graph> clone() const;

  /// The copy of node `id` in this clone, or nullptr.
  Node* copy_of(std::uint64_t id) const;

  /// Whether the graph, or a child graph, allocates or frees memory.
  bool has_memory_nodes() const;

  /// The executable graph that the program has instantiated from a graph with memory nodes: at most one at a time.
  std::weak_ptr<const GraphExec>& instance() { return instance_; }

  /// All nodes, each after its dependencies; fewer than nodes() if there is a cycle.
  std::vector<Node*> in_order() const;

 private:
  Node* parent_ = nullptr;
  std::weak_ptr<const GraphExec> instance_;
  std::vector<std::shared_ptr<Node>> nodes_;
};

}  // namespace gpuctl::softgpu
