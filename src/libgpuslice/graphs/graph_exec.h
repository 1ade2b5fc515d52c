// Executable graphs of the program.
//
// Capturing and building stay the driver's: the program's graph holds its own kernels, and whatever it asks of that
// graph is answered truly. What is instantiated is that graph too, so at first its kernels are the original ones. At
// each launch those that should run in persistent form are given it, with a launch block of their own
// (graph_launch.cc); those that should not, be it because they are short now, are given their original form again.
//
// Putting kernels into a clone of the graph, once, was the other way. But a launch block serves one launch: what would
// clear it in the stream does not know whether workers of the launch before are still to come. A clone also cannot be
// had of graphs that allocate memory, and its nodes are not those by which the program changes its executable graph.
//
// The original form stays with: graphs that have conditional nodes (a body may run many times in one launch) or that
// the device may launch; kernels that start before what they depend on has ended, are cooperative, in clusters, or
// changed by the device; all of a graph with branches after cuGraphExecUpdate, since it is not known which new node the
// driver took for which old one. A graph with such kernels starts when its slice has SMs (opaque.h), as a whole.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "libgpuslice/graphs/graph_kernels.h"
#include "libgpuslice/graphs/graph_source.h"

namespace gpuslice {

class ExecutableGraph {
 public:
  /// The one behind the handle, or null: instantiated before this program came into a slice. Any thread.
  static std::shared_ptr<ExecutableGraph> find(CUgraphExec handle);
  static std::vector<std::shared_ptr<ExecutableGraph>> all();

  /// Makes known what was instantiated just now. The context must be current.
  static void add(CUgraphExec handle, CUgraph graph, GraphKernels&& kernels, bool uses_priorities);
  /// Forgets it, before the driver destroys it; null: not known.
  static std::shared_ptr<ExecutableGraph> remove(CUgraphExec handle);
  /// Takes that back.
  static void put_back(std::shared_ptr<ExecutableGraph> graph);
  static void forget_after_fork();

  using Call = std::function<CUresult()>;  ///< to the driver

  /// With its kernels in their original forms.
  CUresult launch_as_it_is(const Call& call);

  /// What the driver is asked to do with the executable graph, and what that means for its kernels.
  CUresult launch(CUstream stream, const Call& call);
  CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params, const Call& call);
  CUresult set_child(CUgraphNode node, const Call& call);
  CUresult set_enabled(CUgraphNode node, bool enabled, const Call& call);
  CUresult update(CUgraph graph, const Call& call);

  /// This node of the program's graph, or of any (null), will not name a kernel any more.
  void release(CUgraphNode node);
  CUgraph graph() const { return source_->graph(); }

  ExecutableGraph(CUgraphExec handle, std::shared_ptr<GraphSource> source, GraphKernels&& kernels,
                  bool uses_priorities);
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;

 private:
  CUresult set_params(const GraphKernel& kernel, CUDA_KERNEL_NODE_PARAMS params, const std::byte* values,
                      bool with_args);
  CUresult rewrite(GraphKernel& kernel, const Launch& launch);
  CUresult restore(GraphKernel& kernel);
  void keep_original(GraphKernel& kernel, const char* why);
  void explain() const;
  KernelInfo* as_kernel();
  void has_changed();

  const CUgraphExec handle_;
  const std::shared_ptr<GraphSource> source_;
  const bool uses_priorities_;
  std::mutex mutex_;  ///< guards what follows, and is held over the calls; before every other lock of the library
  GraphKernels of_;
  std::shared_ptr<KernelInfo> as_kernel_;  ///< as_kernel(); null: not asked for since the graph changed
};

}  // namespace gpuslice
