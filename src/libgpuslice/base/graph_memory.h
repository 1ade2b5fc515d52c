// How much memory executable graphs need that allocate some themselves (memory nodes). The driver keeps what graphs
// have allocated for the next ones, until the program has it trimmed. This keeps books only: it calls neither the
// driver nor the daemon.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

namespace gpuslice {

/// One node that allocates memory, or frees some that a node has allocated.
struct MemoryNode {
  bool allocates = false;
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};

/// The least memory with which these nodes of one graph can do, in the order given: what is allocated at a time. One
/// that is freed before it is allocated, in this order, counts alone. Pure.
std::uint64_t least_memory(std::span<const MemoryNode> nodes);

/// Any thread.
class GraphMemory {
 public:
  /// The instance of this process; never destroyed.
  static GraphMemory& get();

  /// Of one device: a graph's nodes are on one.
  struct Need {
    CUdevice device = 0;
    std::uint64_t bytes = 0;  ///< 0: it allocates none
  };
  void add(CUgraphExec graph, const Need& need);
  void remove(CUgraphExec graph);
  Need find(CUgraphExec graph) const;
  /// Whether any graph is known. Takes no lock.
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }

  /// In a forked child.
  void forget_after_fork();

 private:
  mutable std::mutex mutex_;
  std::unordered_map<CUgraphExec, Need> needs_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace gpuslice
