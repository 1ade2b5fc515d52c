// cuGraphInstantiate*, cuGraphLaunch, cuGraphExec*.
#include "softgpu/api/older.h"
#include "softgpu/contexts/submit.h"
#include "softgpu/graph_api/graph.h"

using namespace gpuctl::softgpu;

namespace gpuctl::softgpu {
namespace {

bool has_cycle(const Graph& graph) {
  if (graph.in_order().size() != graph.nodes().size()) return true;
  for (const auto& node : graph.nodes()) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    if (child != nullptr && has_cycle(*child->graph)) return true;
  }
  return false;
}

constexpr unsigned long long kFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                      CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                                      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* result, CUgraph handle, unsigned long long flags, CUgraphInstantiateResult* why,
                     const char* call = __builtin_FUNCTION()) {
  *why = CUDA_GRAPH_INSTANTIATE_ERROR;
  return with_context(
      [&](Driver& driver, Context& context) {
        const std::lock_guard lock(driver.graph_mutex);
        const std::shared_ptr<Graph> graph = driver.graphs.find(handle);
        if (result == nullptr || graph == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
        if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
          *why = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (has_cycle(*graph)) {
          *why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
          return CUDA_ERROR_INVALID_VALUE;
        }
        const bool once = graph->has_memory_nodes();
        if (once && !graph->instance().expired()) return CUDA_ERROR_INVALID_VALUE;
        const auto exec = std::make_shared<GraphExec>(driver, context, graph->clone(), flags);
        if (once) graph->instance() = exec;
        *result = driver.graph_execs.add(exec);
        *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
        return CUDA_SUCCESS;
      },
      call);
}

/// Runs `body(exec, node)` with the node of an executable graph that corresponds to a node of the graph it was made
/// from.
template <class Body>
CUresult with_exec_node(CUgraphExec exec_handle, CUgraphNode handle, Body&& body,
                        const char* call = __builtin_FUNCTION()) {
  return with_graph_exec(
      exec_handle,
      [&](Driver& driver, GraphExec& exec) {
        const std::shared_ptr<Node> original = driver.nodes.find(handle);
        Node* node = original == nullptr ? nullptr : exec.find(original->id);
        return node == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_VALUE) : body(driver, exec, *node);
      },
      call);
}

/// Whether a node of an executable graph may be changed to this content.
bool may_become(const Node& node, const NodeContent& content) {
  if (std::holds_alternative<KernelWork>(node.work)) return node.context == content.context;
  if (const auto* copy = std::get_if<CopyWork>(&node.work)) {
    const CUDA_MEMCPY3D& now = copy->what;
    const CUDA_MEMCPY3D& then = std::get<CopyWork>(content.work).what;
    return now.Height <= 1 && now.Depth <= 1 && then.Height <= 1 && then.Depth <= 1 && then.WidthInBytes != 0 &&
           now.srcMemoryType == then.srcMemoryType && now.dstMemoryType == then.dstMemoryType;
  }
  if (const auto* set = std::get_if<SetWork>(&node.work)) {
    return set->what.height <= 1 && std::get<SetWork>(content.work).what.height <= 1;
  }
  return true;
}

/// Whether the node may be disabled.
bool can_be_disabled(const Node& node) {
  return std::holds_alternative<KernelWork>(node.work) || std::holds_alternative<CopyWork>(node.work) ||
         std::holds_alternative<SetWork>(node.work);
}

}  // namespace

CUresult set_exec_params(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams& params, const char* call) {
  return with_exec_node(
      exec_handle, handle,
      [&](Driver& driver, GraphExec& exec, Node& node) {
        if (params.type != type_of(node.work)) return CUDA_ERROR_INVALID_VALUE;
        if (const auto* child = std::get_if<ChildWork>(&node.work)) {
          const std::shared_ptr<Graph> graph = driver.graphs.find(params.graph.graph);
          CUgraphExecUpdateResultInfo info{};
          const bool updated = graph != nullptr && exec.update(*child->graph, *graph, &info) == CUDA_SUCCESS;
          return updated ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
        if (params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || params.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        NodeContent content;
        const CUresult made = make_content(driver, params, &content);
        if (made != CUDA_SUCCESS) return made;
        if (!may_become(node, content)) return CUDA_ERROR_INVALID_VALUE;
        if (auto* kernel = std::get_if<KernelWork>(&content.work)) {
          kernel->attributes = std::get<KernelWork>(node.work).attributes;
        }
        exec.set_work(node, std::move(content.work));
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace gpuctl::softgpu

extern "C" {

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* result, CUgraph graph, unsigned long long flags) {
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_ERROR;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
  return instantiate(result, graph, flags, &why);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* result, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  return instantiate(result, graph, params->flags, &params->result_out);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* result, CUgraph graph, CUgraphNode* error_node, char* log,
                                       size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) log[0] = '\0';
  return cuGraphInstantiateWithFlags(result, graph, 0);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* result, CUgraph graph, CUgraphNode* error_node, char* log,
                                    size_t log_bytes) {
  return cuGraphInstantiate_v2(result, graph, error_node, log, log_bytes);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  return with_driver([&](Driver& driver) {
    return driver.graph_execs.remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  return with_graph_exec(handle, [&](Driver&, GraphExec& exec) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec.flags();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  return with_stream(stream_handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (driver.graph_execs.find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.captures.check_wait(*stream);  // nothing to upload, but not during a capture
  });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return with_stream(stream_handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    bool capturing = false;
    const CUresult refused = driver.captures.check_work(*stream, &capturing);
    if (refused != CUDA_SUCCESS) return refused;
    std::unique_lock lock(driver.graph_mutex);
    const std::shared_ptr<GraphExec> exec = driver.graph_execs.find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!capturing) {
      const CUresult launched = exec->launch(stream);
      lock.unlock();
      return launched == CUDA_SUCCESS && driver.config.graph_launch_waits ? submit_and_wait(stream, [] {}) : launched;
    }
    const std::shared_ptr<Graph> child = exec->source().clone();
    lock.unlock();
    return driver.captures.add(*stream, ChildWork{child});
  });
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  return with_graph_exec(handle, [&](Driver& driver, GraphExec& exec) {
    const std::shared_ptr<Graph> graph = driver.graphs.find(graph_handle);
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : exec.update(exec.source(), *graph, info);
  });
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                   CUgraphExecUpdateResult* result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult updated = cuGraphExecUpdate_v2(exec, graph, &info);
  *result = info.result;
  if (error_node != nullptr) *error_node = info.errorNode;
  return updated;
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_exec_params(exec, node, *params);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                                CUcontext context) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*copy, context);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set,
                                                CUcontext context) {
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*set, context);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*host);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  CUgraphNodeParams params = params_of_child(child);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  if (batch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*batch);
  return set_exec_params(exec, node, params);
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int enabled) {
  return with_exec_node(exec_handle, handle, [&](Driver&, GraphExec& exec, Node& node) {
    if (!can_be_disabled(node)) return CUDA_ERROR_INVALID_VALUE;
    exec.set_enabled(node, enabled != 0);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned int* enabled) {
  return with_exec_node(exec_handle, handle, [&](Driver&, GraphExec& exec, Node& node) {
    if (enabled == nullptr || !can_be_disabled(node)) return CUDA_ERROR_INVALID_VALUE;
    *enabled = exec.enabled(node) ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
