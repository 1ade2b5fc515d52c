// The executable graphs of this process, by handle.
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "libgpuslice/graphs/graph_exec.h"

namespace gpuslice {

namespace {

struct GraphRegistry {
  std::mutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<ExecutableGraph>> graphs;
};

/// Never destroyed, since programs launch in destructors too.
GraphRegistry& graph_registry() {
  static auto* all = new GraphRegistry;
  return *all;
}

}  // namespace

std::shared_ptr<ExecutableGraph> ExecutableGraph::find(CUgraphExec handle) {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.graphs.find(handle);
  return found == all.graphs.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ExecutableGraph>> ExecutableGraph::all() {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<ExecutableGraph>> graphs;
  for (const auto& [handle, graph] : all.graphs) graphs.push_back(graph);
  return graphs;
}

void ExecutableGraph::put_back(std::shared_ptr<ExecutableGraph> graph) {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  graph.swap(
      all.graphs[graph->handle_]);  // an entry left by a graph whose context was destroyed may still have this handle
}

std::shared_ptr<ExecutableGraph> ExecutableGraph::remove(CUgraphExec handle) {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.graphs.find(handle);
  if (found == all.graphs.end()) return nullptr;
  std::shared_ptr<ExecutableGraph> graph = std::move(found->second);
  all.graphs.erase(found);
  return graph;
}

void ExecutableGraph::forget_after_fork() {
  new (&graph_registry()) GraphRegistry;
}

void ExecutableGraph::add(CUgraphExec handle, CUgraph graph, GraphKernels&& kernels, unsigned long long flags) {
  put_back(std::make_shared<ExecutableGraph>(handle, GraphSource::of(graph), std::move(kernels), flags));
}

void ExecutableGraph::give_up_copies(CUcontext context) {
  for (const std::shared_ptr<ExecutableGraph>& graph : all()) {
    if (graph->context_ != context) continue;
    const std::unique_lock lock(graph->mutex_, std::try_to_lock);
    if (lock) graph->confined_.give_up();
  }
}

}  // namespace gpuslice
