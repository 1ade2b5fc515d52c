// Executable graphs: what cuGraphInstantiate makes of a graph, and one launch of it.
//
// A launch is one operation of its stream. The stream's thread runs the nodes whose dependencies have ended, and where
// branches are independent, streams of the executable graph's own help it. Launches of the same executable graph
// follow each other. A launch keeps the plan it was issued with: later updates are for later launches.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <vector>

#include "softgpu/contexts/event.h"
#include "softgpu/graph/graph.h"

namespace gpuctl::softgpu {

class Graphs;

/// The nodes to run, those of child graphs in their parents' place.
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

/// How many steps of a plan can run at the same time, at most (an upper bound).
std::size_t width_of(const Plan& plan);

class GraphExec {
 public:
  /// `source` is a clone, owned from now on, without cycles. `context` runs what helps.
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
  /// shape, or nothing.
  CUresult update(const Graph& mine, const Graph& other, CUgraphExecUpdateResultInfo* info);

  /// Needs Graphs::graph_mutex, as everything here.
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
  bool launched_ = false;  ///< so a launch may have this plan and it must not change
  std::vector<std::shared_ptr<Stream>> helpers_;
  std::shared_ptr<Recording> last_;  ///< of the latest launch
};

}  // namespace gpuctl::softgpu
