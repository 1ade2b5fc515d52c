#include "libgpuslice/graphs/graph_levels.h"

#include <new>
#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/graphs/graph_nodes.h"

namespace gpuslice {

namespace {

/// Puts the level of the kernels of `graph` into `level`. False: they differ from each other or from what is there
/// already, or the driver does not say, or they are in the body of a conditional node, which is not looked at.
bool have_one_level(CUgraph graph, std::optional<int>& level) {
  const Driver& d = driver();
  const std::optional<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes) return false;
  for (const CUgraphNode node : *nodes) {
    CUgraphNodeType type{};
    CUgraph child = nullptr;
    CUlaunchAttributeValue value{};
    if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return false;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      if (d.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS || !have_one_level(child, level)) return false;
    }
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    if (d.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) != CUDA_SUCCESS) return false;
    if (level.value_or(value.priority) != value.priority) return false;
    level = value.priority;
  }
  return true;
}

/// The level that all kernels of the graph have. None: they differ, or there is no kernel, or the driver does not say.
std::optional<int> level_of(CUgraph graph) {
  const Driver& d = driver();
  const bool can = d.cuGraphGetNodes && d.cuGraphNodeGetType && d.cuGraphChildGraphNodeGetGraph &&
                   d.cuGraphKernelNodeGetAttribute && d.cuStreamSetAttribute;
  if (!can) return std::nullopt;
  const RelaxedCapture relaxed;
  std::optional<int> level;
  return have_one_level(graph, level) ? level : std::nullopt;
}

constexpr unsigned long long kByNode = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

}  // namespace

GraphLevels& GraphLevels::get() {
  static auto* instance = new GraphLevels;  // programs launch in destructors too
  return *instance;
}

GraphLevels::Plan GraphLevels::plan(CUgraph graph, unsigned long long flags) {
  // What the device launches, no launch call of ours gives a level.
  if (!(flags & kByNode) || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)) return {.flags = flags};
  const std::optional<int> level = level_of(graph);
  if (!level) return {.flags = flags};
  return {.flags = flags & ~kByNode, .level = StreamPriorities::get().banded_now(*level)};
}

void GraphLevels::made(CUgraphExec exec, const Plan& plan) {
  if (!plan.level) return destroyed(exec);  // one left by a graph whose context was destroyed
  std::lock_guard lock(mutex_);
  levels_[exec] = *plan.level;
  any_.store(true, std::memory_order_relaxed);
}

void GraphLevels::updated(CUgraphExec exec, CUgraph graph) {
  if (!find(exec)) return;
  const std::optional<int> level = level_of(graph);
  if (level) made(exec, {.level = StreamPriorities::get().banded_now(*level)});
}

void GraphLevels::destroyed(CUgraphExec exec) {
  if (!any_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  levels_.erase(exec);
}

std::optional<BandedLevel> GraphLevels::find(CUgraphExec exec) {
  if (!any_.load(std::memory_order_relaxed)) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto found = levels_.find(exec);
  return found == levels_.end() ? std::nullopt : std::optional(found->second);
}

void GraphLevels::forget_after_fork() {
  new (this) GraphLevels;
}

}  // namespace gpuslice
