#include "libgpuslice/base/graph_memory.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>

namespace gpuslice {

std::uint64_t least_memory(std::span<const MemoryNode> nodes) {
  std::map<CUdeviceptr, std::uint64_t> allocated;
  std::set<CUdeviceptr> freed_before;
  std::uint64_t now = 0, most = 0;
  for (const MemoryNode& node : nodes) {
    if (node.allocates) {
      now += node.bytes;
      most = std::max(most, now);
      if (freed_before.contains(node.address))
        now -= node.bytes;
      else
        allocated[node.address] = node.bytes;
    } else if (const auto found = allocated.extract(node.address)) {
      now -= found.mapped();
    } else {
      freed_before.insert(node.address);
    }
  }
  return most;
}

GraphMemory& GraphMemory::get() {
  static auto* memory = new GraphMemory;
  return *memory;
}

void GraphMemory::add(CUgraphExec graph, const Need& need) {
  std::lock_guard lock(mutex_);
  needs_[graph] = need;
  count_ = needs_.size();
}

void GraphMemory::remove(CUgraphExec graph) {
  std::lock_guard lock(mutex_);
  needs_.erase(graph);
  count_ = needs_.size();
}

GraphMemory::Need GraphMemory::find(CUgraphExec graph) const {
  std::lock_guard lock(mutex_);
  const auto found = needs_.find(graph);
  return found == needs_.end() ? Need{} : found->second;
}

void GraphMemory::forget_after_fork() {
  new (this) GraphMemory;
}

}  // namespace gpuslice
