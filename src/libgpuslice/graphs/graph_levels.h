// The priority level of executable graphs whose kernels are to keep the level of their capture.
//
// PyTorch instantiates its graphs so (CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY), and the driver has no way to
// change the levels afterwards. A slice's priority that changes would not reach them. So a graph whose kernels all have
// one level is instantiated without the flag. Then a launch has the level of its stream, as every other launch has, and
// where the kernels were captured with another priority, the stream has theirs during the launch call. A graph whose
// kernels differ keeps the levels of its capture.
#pragma once

#include <cuda.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "libgpuslice/streams/stream_priority.h"

namespace gpuslice {

/// Any thread.
class GraphLevels {
 public:
  /// The instance of this process; never destroyed.
  static GraphLevels& get();

  struct Plan {
    unsigned long long flags = 0;      ///< to instantiate the graph with
    std::optional<BandedLevel> level;  ///< of its kernels; none: the driver sees to it
  };
  /// How to instantiate `graph` when the program asks for `flags`. The context must be current.
  static Plan plan(CUgraph graph, unsigned long long flags);

  /// `exec` was instantiated as planned.
  void made(CUgraphExec exec, const Plan& plan);
  /// `exec` was updated from `graph`.
  void updated(CUgraphExec exec, CUgraph graph);
  void destroyed(CUgraphExec exec);

  /// The level of its kernels, if launches are to see to it.
  std::optional<BandedLevel> find(CUgraphExec exec);

  void forget_after_fork();

 private:
  std::mutex mutex_;
  std::unordered_map<CUgraphExec, BandedLevel> levels_;
  std::atomic<bool> any_{false};
};

}  // namespace gpuslice
