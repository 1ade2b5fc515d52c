// Graphs that the program has destroyed, kept while they are needed.
//
// A kernel of an executable graph is named by its node in the graph that was instantiated, so that one has to outlive
// the executable graph, which a program need not care for. When it destroys such a graph, the driver hears of it once
// the last executable graph made of it is gone.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>

namespace gpuslice {

class GraphSource {
 public:
  /// The one of this graph of the program, for as long as somebody holds it. Any thread.
  static std::shared_ptr<GraphSource> of(CUgraph graph);

  /// The program destroys a graph: what to answer, or nothing when nobody holds it (then the driver is to be asked).
  static std::optional<CUresult> destroy(CUgraph graph);

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
