#include "libgpuslice/graphs/graph_levels.h"

#include <new>
#include <vector>

#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/relaxed_capture.h"

namespace gpuslice {

namespace {

/// What the kernels of a graph have, as far as it is known.
struct Levels {
  std::optional<int> one;
  bool differ = false;  ///< or the driver does not say
};

void collect_levels(CUgraph graph, Levels& out) {
  const Driver& d = driver();
  std::size_t count = 0;
  if (d.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) out.differ = true;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && d.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) out.differ = true;
  for (const CUgraphNode node : nodes) {
    if (out.differ) return;
    CUgraphNodeType type{};
    CUgraph child = nullptr;
    CUlaunchAttributeValue value{};
    if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      out.differ = true;
    } else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      out.differ = true;  // the kernels of its bodies are not looked at
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      if (d.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        collect_levels(child, out);
      else
        out.differ = true;
    } else if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      const bool known = d.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
      out.differ = !known || out.one.value_or(value.priority) != value.priority;
      out.one = value.priority;
    }
  }
}

/// The level that all kernels of the graph have. None: they differ, or there is no kernel, or the driver does not say.
std::optional<int> level_of(CUgraph graph) {
  const Driver& d = driver();
  const bool can = d.cuGraphGetNodes && d.cuGraphNodeGetType && d.cuGraphChildGraphNodeGetGraph &&
                   d.cuGraphKernelNodeGetAttribute && d.cuStreamSetAttribute;
  if (!can) return std::nullopt;
  const RelaxedCapture relaxed;
  Levels levels;
  collect_levels(graph, levels);
  return levels.differ ? std::nullopt : levels.one;
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
