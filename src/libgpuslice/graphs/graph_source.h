// Graphs that the program has destroyed, kept while they are needed.
//
// A kernel of an executable graph is named by its node in the graph that was instantiated. So that graph must outlive
// the executable graph, which programs need not ensure. When a program destroys such a graph, the driver destroys it
// only after the last executable graph made from it is gone.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>

namespace gpuslice {

class GraphSource {
 public:
  /// The object for this graph of the program, which lives as long as something holds it. Any thread.
  static std::shared_ptr<GraphSource> of(CUgraph graph);

  /// The program destroys a graph. Returns the answer for the program; nothing if no executable graph needs it, and
  /// then the caller calls the driver.
  static std::optional<CUresult> destroy(CUgraph graph);

  /// Makes what forget_after_fork() uses.
  static void make_registry();
  /// In a forked child.
  static void forget_after_fork();

  explicit GraphSource(CUgraph graph) : graph_(graph) {}
  ~GraphSource();
  GraphSource(const GraphSource&) = delete;
  GraphSource& operator=(const GraphSource&) = delete;

  CUgraph graph() const { return graph_; }

 private:
  const CUgraph graph_;
  bool destroyed_ = false;  ///< by the program; guarded by the registry's mutex
};

}  // namespace gpuslice
