// The executable graphs of this process, by handle.
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/graphs/graph_copy.h"
#include "libgpuslice/graphs/graph_exec.h"

namespace gpuslice {

namespace {

constexpr char kWhileNothing[] = "it was instantiated while nothing was in force";

/// An executable graph that was instantiated while nothing was in force.
struct Noted {
  CUgraph clone = nullptr;
  unsigned long long flags = 0;
  CUcontext context = nullptr;
};

struct GraphRegistry {
  std::mutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<ExecutableGraph>> graphs;
  std::unordered_map<CUgraphExec, Noted> noted;
};

/// Never destroyed, since programs launch in destructors too.
GraphRegistry& graph_registry() {
  static auto* all = new GraphRegistry;
  return *all;
}

/// Takes out what was noted of it. Without a clone: nothing was.
Noted take_note(CUgraphExec handle) {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.noted.find(handle);
  if (found == all.noted.end()) return {};
  const Noted noted = found->second;
  all.noted.erase(found);
  return noted;
}

void set_note(CUgraphExec handle, const Noted& noted) {
  GraphRegistry& all = graph_registry();
  std::lock_guard lock(all.mutex);
  all.noted[handle] = noted;
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

void ExecutableGraph::make_registry() {
  static_cast<void>(graph_registry());
}

void ExecutableGraph::forget_after_fork() {
  new (&graph_registry()) GraphRegistry;
}

void ExecutableGraph::add(CUgraphExec handle, CUgraph graph, GraphKernels&& kernels, unsigned long long flags) {
  CUgraph clone = nullptr;
  if (!kernels.not_in_part && !kernels.kernels.empty()) {
    const RelaxedCapture relaxed;
    clone = clone_of(graph);
  }
  forget_note(handle);  // one left by a graph whose context was destroyed
  put_back(std::make_shared<ExecutableGraph>(handle, GraphSource::of(graph), std::move(kernels), flags, clone));
}

void ExecutableGraph::note(CUgraphExec handle, CUgraph graph, unsigned long long flags) {
  const RelaxedCapture relaxed;
  forget_note(handle);
  if (CUgraph clone = clone_of(graph)) set_note(handle, {clone, flags, current_context()});
}

void ExecutableGraph::forget_note(CUgraphExec handle) {
  if (CUgraph clone = take_note(handle).clone) driver().cuGraphDestroy(clone);
}

std::shared_ptr<ExecutableGraph> ExecutableGraph::adopt(CUgraphExec handle) {
  const Noted noted = take_note(handle);
  if (!noted.clone) return nullptr;
  if (noted.context != current_context()) {
    set_note(handle, noted);
    return nullptr;
  }
  const RelaxedCapture relaxed;
  GraphKernels kernels = look_at_graph(noted.clone, uses_node_priorities(noted.flags));
  kernels.refused = kWhileNothing;
  const auto graph = std::make_shared<ExecutableGraph>(handle, GraphSource::of(noted.clone), std::move(kernels),
                                                       noted.flags, noted.clone);
  put_back(graph);
  return graph;
}

void ExecutableGraph::give_up_copies(CUcontext context) {
  std::vector<CUgraph> clones;
  {
    GraphRegistry& all = graph_registry();
    std::lock_guard lock(all.mutex);
    for (const auto& [handle, noted] : all.noted)
      if (noted.context == context) clones.push_back(noted.clone);
    std::erase_if(all.noted, [context](const auto& one) { return one.second.context == context; });
  }
  for (CUgraph clone : clones) driver().cuGraphDestroy(clone);
  for (const std::shared_ptr<ExecutableGraph>& graph : all()) {
    if (graph->context_ != context) continue;
    const std::unique_lock lock(graph->mutex_, std::try_to_lock);
    if (lock) graph->confined_.give_up();
  }
}

}  // namespace gpuslice
