#include "libgpuslice/graphs/graph_exec.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/image/packed.h"
#include "libgpuslice/streams/opaque.h"

namespace gpuslice {

namespace {

constexpr char kNotByNode[] = "the driver does not change it there";
constexpr char kNodeGone[] = "the graph does not have its node any more";
constexpr char kChildReplaced[] = "its child graph was replaced";
constexpr char kChanged[] = "it is part of an executable graph that the program has changed";
constexpr char kRefusedThere[] = "it is part of a graph that does not run in a part of the GPU";
constexpr char kInPart[] = "as part of a graph, in its slice's part of the GPU,";
constexpr char kUpdated[] = "it has branches and was updated as a whole";

}  // namespace

ExecutableGraph::ExecutableGraph(CUgraphExec handle, std::shared_ptr<GraphSource> source, GraphKernels&& kernels,
                                 unsigned long long flags, CUgraph clone)
    : handle_(handle),
      source_(std::move(source)),
      flags_(flags),
      context_(current_context()),
      of_(std::move(kernels)),
      confined_(flags, clone) {
  if (of_.not_in_part) confined_.refuse(of_.not_in_part);
  // Only the driver knows whether it can change nodes of child graphs one by one.
  for (GraphKernel& kernel : of_.kernels) {
    if (!kernel.instance || kernel.inside.empty() || of_.refused) continue;
    kernel.rewritten = true;
    if (restore(kernel) != CUDA_SUCCESS) {
      kernel.rewritten = false;
      keep_original(kernel, kNotByNode);
    }
  }
  explain();
}

/// For `gpuctl explain`: notes why kernels that have a persistent form do not run in it here.
void ExecutableGraph::explain() const {
  for (const GraphKernel& kernel : of_.kernels) {
    if (!kernel.kernel || !kernel.kernel->persistent) continue;
    const char* why = kernel.not_in_this_graph ? kernel.not_in_this_graph : of_.refused;
    if (!why) continue;
    kernel.kernel->original_in_graph.store(why);
    kernel.kernel->changed.store(true);
  }
}

void ExecutableGraph::keep_original(GraphKernel& kernel, const char* why) {
  kernel.instance = nullptr;
  kernel.not_in_this_graph = why;
  debug("%s stays in its original form in a graph: %s", kernel.kernel ? kernel.kernel->name.c_str() : "a kernel", why);
}

CUresult ExecutableGraph::set_params(const GraphKernel& kernel, CUDA_KERNEL_NODE_PARAMS params, const std::byte* values,
                                     bool with_args) {
  return nothrow([&] {
    std::vector<void*> pointers;
    auto* base = const_cast<std::byte*>(values);
    for (const Parameter& parameter : kernel.kernel->params) pointers.push_back(base + parameter.offset);
    if (with_args) pointers.push_back(base + kernel.kernel->args_offset);
    pointers.push_back(nullptr);
    params.kernelParams = pointers.data();
    return driver().cuGraphExecKernelNodeSetParams_v2(handle_, kernel.node, &params);
  });
}

CUresult ExecutableGraph::rewrite(GraphKernel& kernel, const Launch& launch) {
  CUDA_KERNEL_NODE_PARAMS params = kernel.original;
  params.func = launch.function;
  params.kern = nullptr;
  params.gridDimX = launch.args.workers;
  params.gridDimY = params.gridDimZ = 1;
  params.sharedMemBytes = dynamic_shared(*kernel.kernel, params.sharedMemBytes);
  const CUresult result = set_params(kernel, params, launch.params.data(), true);
  if (result == CUDA_SUCCESS) {
    kernel.rewritten = true;
  } else {
    keep_original(kernel, kNotByNode);
    explain();
  }
  return result;
}

CUresult ExecutableGraph::restore(GraphKernel& kernel) {
  if (!kernel.rewritten) return CUDA_SUCCESS;
  const CUresult result = set_params(kernel, kernel.original, kernel.values.data(), false);
  if (result == CUDA_SUCCESS) kernel.rewritten = false;
  return result;
}

CUresult ExecutableGraph::restore_all() {
  for (GraphKernel& kernel : of_.kernels) {
    if (const CUresult result = restore(kernel); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

/// All its kernels as one launch.
Opaque::Launch ExecutableGraph::as_original_launch() const {
  Opaque::Launch original{.blocks = 0, .confine = false, .least = of_.least, .cluster = of_.cluster};
  for (const GraphKernel& kernel : of_.kernels)
    if (kernel.enabled) original.blocks = std::max(original.blocks, kernel.config.block_tasks());
  return original;
}

/// The copy that is to be launched now, if any. `original`: as_original_launch().
CUgraphExec ExecutableGraph::choose_copy(Context& context, CUstream stream, const Opaque::Launch& original) {
  if (of_.kernels.empty() || context.handle() != context_) return nullptr;
  const bool all_original =
      of_.refused || std::ranges::none_of(of_.kernels, [](const GraphKernel& k) { return k.instance != nullptr; });
  CUgraphExec copy = nullptr;
  if (all_original || gpuctl::ipc::is_confined(context.view().mode()))
    copy = confined_.choose(context, stream, original);
  if (!copy) confined_.leave(stream);
  note_where(copy != nullptr);
  return copy;
}

/// For `gpuctl explain`: on how many SMs the kernels that keep their original form are confined, or why they are not.
void ExecutableGraph::note_where(bool in_copy) {
  if (std::exchange(noted_, confined_.where()) == confined_.where()) return;
  for (const GraphKernel& kernel : of_.kernels) {
    if (!kernel.kernel) continue;
    if (!in_copy && kernel.instance) {
      kernel.kernel->note_rewritten();
      continue;
    }
    if (in_copy && kernel.kernel->persistent) kernel.kernel->note_original(kInPart);
    kernel.kernel->confined_sms = noted_.sms;
    kernel.kernel->anywhere = noted_.why_anywhere;
    kernel.kernel->changed = true;
  }
}

CUresult ExecutableGraph::launch(CUstream stream, const Call& call) {
  std::lock_guard lock(mutex_);
  // What a capture copies from here may run long after the launch blocks of this launch are reused.
  Context* context = capturing(stream) ? nullptr : Contexts::current();
  const Opaque::Launch whole = as_original_launch();
  if (CUgraphExec copy = context ? choose_copy(*context, stream, whole) : nullptr) {
    for (const GraphKernel& kernel : of_.kernels)
      if (kernel.kernel) kernel.kernel->count_launch();
    context->count_original_launch();
    return context->launch_graph(stream, {}, whole, false, {}, [&] {
      CUresult result = driver().cuGraphLaunch(copy, stream);
      if (result != CUDA_SUCCESS) {
        confined_.refuse(kRefusedThere);
        confined_.leave(stream);
        result = restore_all();
        if (result == CUDA_SUCCESS) result = call();
      }
      confined_.launched(stream);
      return result;
    });
  }
  std::vector<GraphCandidate> candidates;
  std::vector<GraphKernel*> kernels;
  std::uint64_t blocks = 0;  // of the largest kernel that stays in original form
  for (GraphKernel& kernel : of_.kernels) {
    if (kernel.kernel && kernel.enabled && context) kernel.kernel->count_launch();
    if (context && kernel.enabled && kernel.instance && !of_.refused && candidates.size() < kMostGraphKernels &&
        context->instance_of(*kernel.kernel) == kernel.instance) {
      candidates.push_back({kernel.instance, &kernel.config, &kernel.values});
      kernels.push_back(&kernel);
      continue;
    }
    if (const CUresult result = restore(kernel); result != CUDA_SUCCESS) return result;
    if (kernel.enabled) blocks = std::max(blocks, kernel.config.block_tasks());
  }
  if (!context) return call();
  Opaque::Launch original{.blocks = blocks, .confine = false};
  if (blocks > 0 && !capturing_anything()) {
    context->count_original_launch();
    if (candidates.empty() && context->view().jobs() != gpuctl::ipc::kNoJobs) original.kernel = as_kernel();
    if (original.kernel) original.kernel->count_launch();
  }
  const auto arm = [&](std::size_t number, const Launch* launch) {
    GraphKernel& kernel = *kernels[number];
    return launch ? rewrite(kernel, *launch) : restore(kernel);
  };
  return context->launch_graph(stream, candidates, original, !of_.chain, arm, [&] {
    const CUresult result = call();
    confined_.launched(stream);
    return result;
  });
}

/// For policies for jobs, a graph without kernels in persistent form counts as one kernel. It is identified by its
/// kernels, their order and their shapes.
KernelInfo* ExecutableGraph::as_kernel() {
  if (as_kernel_) return as_kernel_.get();
  Packer shape;
  std::size_t count = 0;
  for (const GraphKernel& kernel : of_.kernels) {
    if (!kernel.enabled) continue;
    ++count;
    shape.number(kernel.kernel ? hash_of(*kernel.kernel) : 0);
    for (const std::uint32_t size : kernel.config.grid) shape.number(size);
    for (const std::uint32_t size : kernel.config.block) shape.number(size);
    shape.number(kernel.config.shared);
  }
  char name[64];
  std::snprintf(name, sizeof name, "graph %016llx, kernels: %zu",
                static_cast<unsigned long long>(gpuctl::ipc::kernel_hash("graph", shape.bytes)), count);
  as_kernel_ = std::make_shared<KernelInfo>();
  as_kernel_->name = name;
  as_kernel_->module = "graph";
  Kernels::get().add(handle_, as_kernel_);
  return as_kernel_.get();
}

/// From now on the graph counts as another kernel.
void ExecutableGraph::has_changed() {
  confined_.refuse(kChanged);
  if (!as_kernel_) return;
  nothrow([&] {
    Kernels::get().remove({as_kernel_});
    return CUDA_SUCCESS;
  });
  as_kernel_.reset();
}

ExecutableGraph::~ExecutableGraph() {
  has_changed();
}

bool ExecutableGraph::may_wait() {
  std::lock_guard lock(mutex_);
  return of_.may_wait;
}

void ExecutableGraph::give_up_copy() {
  std::lock_guard lock(mutex_);
  confined_.give_up();
}

CUresult ExecutableGraph::launch_in_original_form(CUstream stream, const Call& call) {
  std::lock_guard lock(mutex_);
  const bool runs = !capturing(stream);
  if (runs) confined_.leave(stream);
  if (const CUresult result = restore_all(); result != CUDA_SUCCESS) return result;
  const CUresult result = call();
  if (runs) confined_.launched(stream);
  return result;
}

CUresult ExecutableGraph::set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params, const Call& call) {
  std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(of_.kernels.begin(), of_.kernels.end(), [&](const GraphKernel& k) { return k.node == node; });
  if (known == of_.kernels.end()) {
    confined_.refuse(kChanged);
    return call();
  }
  GraphKernel changed = *known;
  {
    const RelaxedCapture relaxed;
    read_params(params, changed);  // also loads the kernel
  }
  changed.rewritten = false;
  if (of_.refused) changed.instance = nullptr;
  const CUresult result = call();
  if (result == CUDA_SUCCESS) *known = std::move(changed);
  has_changed();
  explain();
  return result;
}

CUresult ExecutableGraph::set_child(CUgraphNode node, const Call& call) {
  std::lock_guard lock(mutex_);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  for (GraphKernel& kernel : of_.kernels) {
    if (std::find(kernel.inside.begin(), kernel.inside.end(), node) == kernel.inside.end()) continue;
    kernel.rewritten = false;
    keep_original(kernel, kChildReplaced);
  }
  of_.may_wait = true;  // the new one is unknown
  has_changed();
  explain();
  return result;
}

CUresult ExecutableGraph::set_enabled(CUgraphNode node, bool enabled, const Call& call) {
  std::lock_guard lock(mutex_);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  for (GraphKernel& kernel : of_.kernels) {
    if (kernel.node == node) kernel.enabled = enabled;
  }
  has_changed();
  return result;
}

CUresult ExecutableGraph::set_other(const Call& call) {
  std::lock_guard lock(mutex_);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) confined_.refuse(kChanged);
  return result;
}

// The driver pairs the nodes of both graphs. If each graph is a chain, there is only one way to pair them.
CUresult ExecutableGraph::update(CUgraph graph, const Call& call) {
  std::lock_guard lock(mutex_);
  GraphKernels updated;
  {
    const RelaxedCapture relaxed;
    if (graph) updated = look_at_graph(graph, uses_node_priorities(flags_));  // also loads its kernels
  }
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  const char* refused = of_.refused ? of_.refused : updated.refused;
  if (!refused && !(of_.chain && updated.chain && of_.kernels.size() == updated.kernels.size())) refused = kUpdated;
  for (std::size_t i = 0; i < updated.kernels.size(); ++i) {
    GraphKernel& kernel = updated.kernels[i];
    if (refused) {
      kernel.instance = nullptr;
      continue;
    }
    kernel.node = of_.kernels[i].node;
    kernel.inside = of_.kernels[i].inside;
    kernel.enabled = of_.kernels[i].enabled;
    const char* before = of_.kernels[i].not_in_this_graph;
    if (before == kNotByNode || before == kNodeGone) keep_original(kernel, before);
  }
  updated.may_wait |= of_.may_wait;
  of_ = std::move(updated);
  has_changed();
  of_.refused = refused;
  explain();
  return result;
}

void ExecutableGraph::release(CUgraphNode node) {
  std::lock_guard lock(mutex_);
  for (GraphKernel& kernel : of_.kernels) {
    const bool concerned = !node || kernel.node == node ||
                           std::find(kernel.inside.begin(), kernel.inside.end(), node) != kernel.inside.end();
    if (!concerned || !kernel.instance) continue;
    restore(kernel);
    keep_original(kernel, kNodeGone);
  }
  explain();
}

}  // namespace gpuslice
