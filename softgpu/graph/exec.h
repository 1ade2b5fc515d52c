// Executable graphs, made by cuGraphInstantiate, and their launches.
//
// A launch is one operation of its stream. The stream's thread runs the nodes whose dependencies have ended. Where
// branches are independent, streams that the executable graph owns help it. Launches of the same executable graph
// follow each other. A launch keeps the plan with which it was issued: later updates affect later launches.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <vector>

#include "softgpu/contexts/event.h"
#include "softgpu/graph/graph.h"

namespace gpuctl::softgpu {

class Graphs;

/// The nodes to run, with the nodes of child graphs in place of their parents.
struct Plan {
  struct Step {
    Context* context = nullptr;
    std::shared_ptr<const Work> work;
    bool enabled = true;
    std::size_t waits_for = 0;           ///< number of steps
    std::vector<std::size_t> followers;  ///< indices of steps
  };
  std::vector<Step> steps;
};

/// An upper bound of how many steps of a plan can run at the same time.
std::size_t width_of(const Plan& plan);

class GraphExec {
 public:
  /// `source` is a clone without cycles; this object owns it from now on. The helping streams are streams of `context`.
  GraphExec(Graphs& graphs, Context& context, std::shared_ptr<Graph> source, unsigned long long flags);
  ~GraphExec();
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  unsigned long long flags() const { return flags_; }
  const Graph& source() const { return *source_; }

  /// The node that stands for node `id` of the graph this was made from (or of a child graph in it), or nullptr.
  Node* find(std::uint64_t id) const;

  /// Replaces what a node does; it must have the same type.
  void set_work(Node& node, Work work);

  bool enabled(const Node& node) const;
  void set_enabled(const Node& node, bool enabled);

  /// Changes all nodes of `mine`, which is source() or the graph of a child node in it, to those of a graph of the same
  /// shape. Changes all of them, or none.
  CUresult update(const Graph& mine, const Graph& other, CUgraphExecUpdateResultInfo* info);

  /// The caller holds Graphs::graph_mutex, as for everything here.
  CUresult launch(const std::shared_ptr<Stream>& stream);

 private:
  struct Run;
  using Changes = std::vector<std::pair<Node*, const Node*>>;
  CUresult pair_up(const Graph& mine, const Graph& other, Changes* changes, CUgraphExecUpdateResultInfo* info) const;

  void index(const Graph& graph);
  Plan& changeable_plan();
  CUresult take_memory();

  Graphs& graphs_;
  Context& context_;
  const std::shared_ptr<Graph> source_;
  const unsigned long long flags_;
  std::map<std::uint64_t, Node*> by_origin_;
  std::map<const Node*, std::size_t> step_of_;
  std::shared_ptr<Plan> plan_;
  bool launched_ = false;  ///< if so, a launch may use this plan, and it must not change
  std::vector<std::shared_ptr<Stream>> helpers_;
  std::shared_ptr<Recording> last_;  ///< of the latest launch
};

}  // namespace gpuctl::softgpu
