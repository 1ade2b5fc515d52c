// Graphs: those that the program instantiates and launches, and its changes to them (graph_exec.h).
#include <cstring>
#include <optional>

#include "libgpuslice/agent/activity.h"
#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/agent/hold.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/memory_reserve.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/graphs/graph_allocations.h"
#include "libgpuslice/graphs/graph_exec.h"
#include "libgpuslice/graphs/graph_levels.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/opaque.h"
#include "libgpuslice/streams/quiesce.h"
#include "libgpuslice/streams/stream_priority.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

namespace {

constexpr char kDeviceLaunch[] = "the device may launch the graph";

// Older functions that cuda.h no longer declares.
using InstantiateWithLog = CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t);
using UpdateV1 = CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
using SetKernelV1 = CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
using AddNodeV1 = CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraphNodeParams*);

/// While nothing is in force. What may come into force, as SMs of the device are not guaranteed to the slice, is a
/// reserve that is kept while its slice is active.
template <class Plain>
CUresult instantiate_free(int device, CUgraphExec* exec, CUgraph graph, unsigned long long flags, Plain plain) {
  const CUresult result = plain();
  const gpuctl::ipc::Stub* stub = Client::get().stub();
  const bool may_be_limited = stub && device >= 0 && gpuctl::ipc::load(stub->guaranteed_sms[device]) != 0;
  const bool may_be_copied = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0;
  if (result == CUDA_SUCCESS && may_be_limited && may_be_copied) ExecutableGraph::note(*exec, graph, flags);
  return result;
}

/// `with_flags(flags)` makes the driver's call.
template <class WithFlags>
CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long asked, WithFlags with_flags) {
  if (!exec || !graph || !Client::get().wanted() || memory_ran_out()) return with_flags(asked);
  return nothrow([&] {
    const GraphLevels::Plan plan = GraphLevels::plan(graph, asked);
    const unsigned long long flags = plan.flags;
    const auto plain = [&] {
      const CUresult result = with_flags(flags);
      if (result == CUDA_SUCCESS) GraphLevels::get().made(*exec, plan);
      if (result == CUDA_SUCCESS) note_allocations(*exec, graph);
      return result;
    };
    GraphKernels kernels;
    {
      const RelaxedCapture relaxed;
      const int free = Activity::free_device();
      if (free >= 0 || !Contexts::current()) return instantiate_free(free, exec, graph, flags, plain);
      kernels = look_at_graph(graph, uses_node_priorities(flags));
    }
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) kernels.refused = kernels.not_in_part = kDeviceLaunch;
    CUresult result = CUDA_SUCCESS;
    {
      QuiesceLaunches quiesced;  // the driver may load kernels only now, which libgpuslice has not seen
      result = plain();
    }
    if (result == CUDA_SUCCESS) ExecutableGraph::add(*exec, graph, std::move(kernels), flags);
    return result;
  });
}

CUresult launch_graph(CUgraphExec exec, CUstream stream, bool per_thread) {
  if (!driver().cuGraphLaunch) return CUDA_ERROR_NOT_INITIALIZED;
  const CUstream where = explicit_stream(stream, per_thread);
  if (!Client::get().wanted()) return driver().cuGraphLaunch(exec, where);
  const auto plain = [&] {
    const auto call = [&] { return driver().cuGraphLaunch(exec, where); };
    return capturing(where) ? call() : counted_launch(exec, call);
  };
  note_work(where);
  wait_if_held(where);
  const StreamCall in_flight(where);
  return nothrow([&] {
    const int free = Activity::free_device();
    std::shared_ptr<ExecutableGraph> graph = ExecutableGraph::find(exec);
    if (!graph && free < 0 && !capturing_anything() && Contexts::current()) graph = ExecutableGraph::adopt(exec);
    std::optional<WaitingStreams::Putting> putting;
    std::optional<StreamPriorities::Lent> lent;
    if (!capturing(where)) {
      if (!graph || graph->may_wait()) putting.emplace(WaitingStreams::get(), where);
      StreamPriorities::get().before_launch(where);
      if (const auto level = GraphLevels::get().find(exec)) lent.emplace(where, *level);
    }
    if (free >= 0) Activity::get().launched(free, 1);
    const bool original = free >= 0 || memory_ran_out();
    if (graph) return original ? graph->launch_in_original_form(where, plain) : graph->launch(where, plain);
    if (original) return plain();
    // Instantiated before this program joined a slice, or while nothing was in force, so its kernels are unknown.
    Context* context = capturing_anything() ? nullptr : Contexts::current();
    if (!context) return plain();
    context->count_original_launch();
    const Opaque::Turn turn(context->opaque(), where, {.blocks = context->view().sms(), .confine = false});
    return plain();
  });
}

/// Calls `change(graph, call)` for an executable graph that is known, else only the driver.
template <class Change, class Plain>
CUresult change(CUgraphExec exec, Change change, Plain plain) {
  return nothrow([&] {
    const std::shared_ptr<ExecutableGraph> graph = ExecutableGraph::find(exec);
    if (graph) return change(*graph, plain);
    ExecutableGraph::forget_note(exec);
    return plain();
  });
}

template <class Plain>
CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params, Plain plain) {
  if (!params) return plain();
  return change(
      exec, [&](ExecutableGraph& graph, const auto& call) { return graph.set_kernel(node, *params, call); }, plain);
}

template <class Plain>
CUresult set_other(CUgraphExec exec, Plain plain) {
  return change(
      exec, [](ExecutableGraph& graph, const auto& call) { return graph.set_other(call); }, plain);
}

template <class Plain>
CUresult update(CUgraphExec exec, CUgraph graph, Plain plain) {
  return nothrow([&] {
    const CUresult result = change(
        exec, [&](ExecutableGraph& known, const auto& call) { return known.update(graph, call); }, plain);
    if (result == CUDA_SUCCESS && graph) GraphLevels::get().updated(exec, graph);
    return result;
  });
}

/// Whether a graph becomes part of another one itself, not a copy of it. Reads the field by its offset, since older
/// cuda.h lack it; its bytes are zero there.
bool moves_graph(const CUgraphNodeParams& params) {
  unsigned ownership = 0;
  std::memcpy(&ownership, reinterpret_cast<const std::byte*>(&params.graph) + sizeof(CUgraph), sizeof ownership);
  return params.type == CU_GRAPH_NODE_TYPE_GRAPH && ownership == 1;
}

/// A graph that becomes part of another one is destroyed with that one.
template <class Plain>
CUresult add_node(const CUgraphNodeParams* params, Plain plain) {
  return nothrow([&] {
    if (params && moves_graph(*params)) {
      for (const auto& known : ExecutableGraph::all())
        if (known->graph() == params->graph.graph) known->release(nullptr);
    }
    return plain();
  });
}

/// The oldest form lacks the last two members.
template <class Older>
CUDA_KERNEL_NODE_PARAMS newer(const Older& p) {
  CUDA_KERNEL_NODE_PARAMS params{.func = p.func,
                                 .gridDimX = p.gridDimX,
                                 .gridDimY = p.gridDimY,
                                 .gridDimZ = p.gridDimZ,
                                 .blockDimX = p.blockDimX,
                                 .blockDimY = p.blockDimY,
                                 .blockDimZ = p.blockDimZ,
                                 .sharedMemBytes = p.sharedMemBytes,
                                 .kernelParams = p.kernelParams,
                                 .extra = p.extra};
  if constexpr (requires { p.kern; }) {
    params.kern = p.kern;
    params.ctx = p.ctx;
  }
  return params;
}

CUresult instantiate_with_log(const char* name, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                              std::size_t size) {
  const auto real = older<InstantiateWithLog>(name);
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  return instantiate(exec, graph, 0, [&](auto) { return real(exec, graph, error_node, log, size); });
}

CUresult instantiate_with_params(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params,
                                 bool per_thread) {
  if (!driver().cuGraphInstantiateWithParams) return CUDA_ERROR_NOT_INITIALIZED;
  if (!params) return driver().cuGraphInstantiateWithParams(exec, graph, params);
  CUDA_GRAPH_INSTANTIATE_PARAMS given = *params;
  if (given.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
    join_before(given.hUploadStream = explicit_stream(given.hUploadStream, per_thread));
  const CUresult result = instantiate(exec, graph, given.flags, [&](unsigned long long flags) {
    given.flags = flags;
    return driver().cuGraphInstantiateWithParams(exec, graph, &given);
  });
  params->hErrNode_out = given.hErrNode_out;
  params->result_out = given.result_out;
  return result;
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

#undef cuGraphInstantiate
GPUSLICE_HOOK cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, size_t size) {
  return instantiate_with_log("cuGraphInstantiate", exec, graph, error_node, log, size);
}
GPUSLICE_HOOK cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, size_t size) {
  return instantiate_with_log("cuGraphInstantiate_v2", exec, graph, error_node, log, size);
}
GPUSLICE_HOOK cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if (!driver().cuGraphInstantiateWithFlags) return CUDA_ERROR_NOT_INITIALIZED;
  return instantiate(exec, graph, flags, [&](unsigned long long given) {
    return driver().cuGraphInstantiateWithFlags(exec, graph, given);
  });
}
GPUSLICE_HOOK cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate_with_params(exec, graph, params, false);
}
GPUSLICE_HOOK cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate_with_params(exec, graph, params, true);
}

GPUSLICE_HOOK cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return launch_graph(exec, stream, false);
}
GPUSLICE_HOOK cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return launch_graph(exec, stream, true);
}

#undef cuGraphExecKernelNodeSetParams
GPUSLICE_HOOK cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  static const auto real = older<SetKernelV1>("cuGraphExecKernelNodeSetParams");
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  const CUDA_KERNEL_NODE_PARAMS now = params ? newer(*params) : CUDA_KERNEL_NODE_PARAMS{};
  return set_kernel(exec, node, params ? &now : nullptr, [&] { return real(exec, node, params); });
}
GPUSLICE_HOOK cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* params) {
  if (!driver().cuGraphExecKernelNodeSetParams_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return set_kernel(exec, node, params, [&] { return driver().cuGraphExecKernelNodeSetParams_v2(exec, node, params); });
}

GPUSLICE_HOOK cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (!driver().cuGraphExecNodeSetParams) return CUDA_ERROR_NOT_INITIALIZED;
  const auto plain = [&] { return driver().cuGraphExecNodeSetParams(exec, node, params); };
  if (params && params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    const CUDA_KERNEL_NODE_PARAMS now = newer(params->kernel);
    return set_kernel(exec, node, &now, plain);
  }
  if (params && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return change(
        exec, [&](ExecutableGraph& graph, const auto& call) { return graph.set_child(node, call); }, plain);
  }
  return set_other(exec, plain);
}

GPUSLICE_HOOK cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                             CUcontext context) {
  if (!driver().cuGraphExecMemcpyNodeSetParams) return CUDA_ERROR_NOT_INITIALIZED;
  return set_other(exec, [&] { return driver().cuGraphExecMemcpyNodeSetParams(exec, node, params, context); });
}

GPUSLICE_HOOK cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                             CUcontext context) {
  if (!driver().cuGraphExecMemsetNodeSetParams) return CUDA_ERROR_NOT_INITIALIZED;
  return set_other(exec, [&] { return driver().cuGraphExecMemsetNodeSetParams(exec, node, params, context); });
}

GPUSLICE_HOOK cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (!driver().cuGraphExecEventRecordNodeSetEvent) return CUDA_ERROR_NOT_INITIALIZED;
  return set_other(exec, [&] { return driver().cuGraphExecEventRecordNodeSetEvent(exec, node, event); });
}

GPUSLICE_HOOK cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (!driver().cuGraphExecEventWaitNodeSetEvent) return CUDA_ERROR_NOT_INITIALIZED;
  return set_other(exec, [&] { return driver().cuGraphExecEventWaitNodeSetEvent(exec, node, event); });
}

/// Defines a function that changes a node which is neither a kernel nor a graph.
#define GPUSLICE_SET_OTHER(name, Params)                                         \
  GPUSLICE_HOOK name(CUgraphExec exec, CUgraphNode node, const Params* params) { \
    if (!driver().name) return CUDA_ERROR_NOT_INITIALIZED;                       \
    return set_other(exec, [&] { return driver().name(exec, node, params); });   \
  }
GPUSLICE_SET_OTHER(cuGraphExecHostNodeSetParams, CUDA_HOST_NODE_PARAMS)
GPUSLICE_SET_OTHER(cuGraphExecBatchMemOpNodeSetParams, CUDA_BATCH_MEM_OP_NODE_PARAMS)
GPUSLICE_SET_OTHER(cuGraphExecExternalSemaphoresSignalNodeSetParams, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS)
GPUSLICE_SET_OTHER(cuGraphExecExternalSemaphoresWaitNodeSetParams, CUDA_EXT_SEM_WAIT_NODE_PARAMS)
#undef GPUSLICE_SET_OTHER

GPUSLICE_HOOK cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  if (!driver().cuGraphExecChildGraphNodeSetParams) return CUDA_ERROR_NOT_INITIALIZED;
  return change(
      exec, [&](ExecutableGraph& graph, const auto& call) { return graph.set_child(node, call); },
      [&] { return driver().cuGraphExecChildGraphNodeSetParams(exec, node, child); });
}

GPUSLICE_HOOK cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  if (!driver().cuGraphNodeSetEnabled) return CUDA_ERROR_NOT_INITIALIZED;
  return change(
      exec, [&](ExecutableGraph& graph, const auto& call) { return graph.set_enabled(node, enabled != 0, call); },
      [&] { return driver().cuGraphNodeSetEnabled(exec, node, enabled); });
}

#undef cuGraphExecUpdate
GPUSLICE_HOOK cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                CUgraphExecUpdateResult* out) {
  static const auto real = older<UpdateV1>("cuGraphExecUpdate");
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  return update(exec, graph, [&] { return real(exec, graph, error_node, out); });
}
GPUSLICE_HOOK cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (!driver().cuGraphExecUpdate_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return update(exec, graph, [&] { return driver().cuGraphExecUpdate_v2(exec, graph, info); });
}

/// The program sees the flags that it asked for.
GPUSLICE_HOOK cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return nothrow([&] {
    if (!driver().cuGraphExecGetFlags) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuGraphExecGetFlags(exec, flags);
    if (result == CUDA_SUCCESS && GraphLevels::get().find(exec))
      *flags |= CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    return result;
  });
}

GPUSLICE_HOOK cuGraphExecDestroy(CUgraphExec exec) {
  return nothrow([&] {
    if (!driver().cuGraphExecDestroy) return CUDA_ERROR_NOT_INITIALIZED;
    std::shared_ptr<ExecutableGraph> known = ExecutableGraph::remove(exec);
    const CUresult result = driver().cuGraphExecDestroy(exec);
    if (result == CUDA_SUCCESS) ExecutableGraph::forget_note(exec);
    if (result == CUDA_SUCCESS) GraphLevels::get().destroyed(exec);
    if (result == CUDA_SUCCESS) GraphMemory::get().remove(exec);
    if (known && result == CUDA_SUCCESS) known->give_up_copy();
    if (known && result != CUDA_SUCCESS) ExecutableGraph::put_back(std::move(known));
    return result;
  });
}

GPUSLICE_HOOK cuDeviceGraphMemTrim(CUdevice device) {
  return nothrow([&] {
    if (!driver().cuDeviceGraphMemTrim) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuDeviceGraphMemTrim(device);
    if (result == CUDA_SUCCESS) HeldMemory::get().set_graphs(device, held_by_graphs(device));
    return result;
  });
}

#undef cuGraphAddNode
GPUSLICE_HOOK cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                             CUgraphNodeParams* params) {
  static const auto real = older<AddNodeV1>("cuGraphAddNode");
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  return add_node(params, [&] { return real(node, graph, dependencies, count, params); });
}
GPUSLICE_HOOK cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* params) {
  if (!driver().cuGraphAddNode_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return add_node(params, [&] { return driver().cuGraphAddNode_v2(node, graph, dependencies, data, count, params); });
}

GPUSLICE_HOOK cuGraphAddNode_v3(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* params) {
  static const auto real = older<decltype(&cuGraphAddNode_v2)>("cuGraphAddNode_v3");
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  return add_node(params, [&] { return real(node, graph, dependencies, data, count, params); });
}

GPUSLICE_HOOK cuGraphDestroyNode(CUgraphNode node) {
  return nothrow([&] {
    if (!driver().cuGraphDestroyNode) return CUDA_ERROR_NOT_INITIALIZED;
    if (node) {
      for (const std::shared_ptr<ExecutableGraph>& known : ExecutableGraph::all()) known->release(node);
    }
    return driver().cuGraphDestroyNode(node);
  });
}

GPUSLICE_HOOK cuGraphDestroy(CUgraph graph) {
  return nothrow([&] {
    if (!driver().cuGraphDestroy) return CUDA_ERROR_NOT_INITIALIZED;
    const std::optional<CUresult> kept = GraphSource::destroy(graph);
    return kept ? *kept : driver().cuGraphDestroy(graph);
  });
}
