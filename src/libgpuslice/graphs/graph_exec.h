// Executable graphs of the program.
//
// Capturing and building graphs stay with the driver. The program's graph holds its own kernels, so the driver's
// answers about it are true. The same graph is instantiated, so at first its kernels are the original ones. At each
// launch, the kernels that should run in persistent form are given it, each with its own launch block
// (graph_launch.cc). Kernels that should not, for example because they are short now, get their original form back.
//
// The alternative was to put kernels into a clone of the graph, once. But a launch block serves one launch: an
// operation in the stream that clears it cannot know whether workers of the launch before are still to come. Also,
// graphs that allocate memory cannot be cloned, and the program changes its executable graph through the nodes of the
// original, not of the clone.
//
// The original form stays in these cases: graphs that have conditional nodes (a body may run many times in one launch)
// or that the device may launch; kernels that start before their dependencies have ended, are cooperative, are in
// clusters, or are changed by the device; all kernels of a graph with branches after cuGraphExecUpdate, since it is
// unknown which new node the driver paired with which old one. A graph with such kernels starts as a whole when its
// slice has SMs (opaque.h), on all of them, or as a copy that is confined to those of the slice (confined_graph.h).
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "libgpuslice/graphs/confined_graph.h"
#include "libgpuslice/graphs/graph_kernels.h"
#include "libgpuslice/graphs/graph_source.h"

namespace gpuslice {

class ExecutableGraph {
 public:
  /// The graph with this handle. Null if it was instantiated while nothing was in force for this program, or before it
  /// joined a slice. Any thread.
  static std::shared_ptr<ExecutableGraph> find(CUgraphExec handle);
  static std::vector<std::shared_ptr<ExecutableGraph>> all();

  /// Adds a graph that was just instantiated, with these flags. The context must be current.
  static void add(CUgraphExec handle, CUgraph graph, GraphKernels&& kernels, unsigned long long flags);
  /// The same of one that was instantiated while nothing was in force: it is cloned and no more, as no context may be
  /// managed yet.
  static void note(CUgraphExec handle, CUgraph graph, unsigned long long flags);
  /// Makes such a graph known: its kernels keep their original form, and it may be confined. Null: it was not noted, or
  /// in another context. The context must be current, and managed.
  static std::shared_ptr<ExecutableGraph> adopt(CUgraphExec handle);
  /// The program changed it, so that its clone is not what it is any more.
  static void forget_note(CUgraphExec handle);
  /// Forgets the graph, before the driver destroys it. Returns it; null if it is unknown.
  static std::shared_ptr<ExecutableGraph> remove(CUgraphExec handle);
  /// Undoes remove().
  static void put_back(std::shared_ptr<ExecutableGraph> graph);
  /// Makes what forget_after_fork() uses.
  static void make_registry();
  static void forget_after_fork();

  using Call = std::function<CUresult()>;  ///< makes the driver's call

  /// Launches the graph with all kernels in original form, on any SMs.
  CUresult launch_in_original_form(CUstream stream, const Call& call);

  /// Each makes the driver's call, and does what that means for the graph's kernels.
  CUresult launch(CUstream stream, const Call& call);
  CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params, const Call& call);
  CUresult set_child(CUgraphNode node, const Call& call);
  CUresult set_enabled(CUgraphNode node, bool enabled, const Call& call);
  CUresult set_other(const Call& call);  ///< a node that is neither a kernel nor a graph
  CUresult update(CUgraph graph, const Call& call);

  /// This node of the program's graph will no longer name a kernel. Null: no node of the graph will.
  void release(CUgraphNode node);
  CUgraph graph() const { return source_->graph(); }
  /// Whether a launch may wait for what the GPU does not do by itself (waiting_streams.h).
  bool may_wait();

  /// The program has destroyed the graph.
  void give_up_copy();
  /// The parts of the GPU in this context, or all of it, are about to be destroyed. Leaves out graphs that another
  /// thread is launching, which it must not do now, rather than wait for it.
  static void give_up_copies(CUcontext context);

  /// `clone`: of the graph when it was instantiated, which belongs to this object from now on; null: none was made.
  ExecutableGraph(CUgraphExec handle, std::shared_ptr<GraphSource> source, GraphKernels&& kernels,
                  unsigned long long flags, CUgraph clone);
  ~ExecutableGraph();
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;

 private:
  CUresult set_params(const GraphKernel& kernel, CUDA_KERNEL_NODE_PARAMS params, const std::byte* values,
                      bool with_args);
  CUresult rewrite(GraphKernel& kernel, const Launch& launch);
  CUresult restore(GraphKernel& kernel);
  CUresult restore_all();
  void keep_original(GraphKernel& kernel, const char* why);
  void explain() const;
  KernelInfo* as_kernel();
  void has_changed();
  Opaque::Launch as_original_launch() const;
  void note_where(bool in_copy);
  CUgraphExec choose_copy(Context& context, CUstream stream, const Opaque::Launch& original);

  const CUgraphExec handle_;
  const std::shared_ptr<GraphSource> source_;
  const unsigned long long flags_;
  const CUcontext context_;  ///< that it was instantiated in
  /// Guards what follows; held over the driver's calls; taken before every other lock of the library.
  std::mutex mutex_;
  GraphKernels of_;
  ConfinedGraph confined_;
  ConfinedGraph::Where noted_;             ///< what note_where() last found
  std::shared_ptr<KernelInfo> as_kernel_;  ///< result of as_kernel(); null: not asked for since the graph changed
};

}  // namespace gpuslice
