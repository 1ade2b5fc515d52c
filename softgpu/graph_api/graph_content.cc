// Parameters of nodes: makes the content of a node from them, and returns them again.
#include <algorithm>
#include <cstring>

#include "softgpu/graph_api/graph.h"

namespace gpuctl::softgpu {
namespace {

/// The context that parameters name, or the current one, or nullptr if there is none.
Context* context_of(Driver& driver, CUcontext handle) {
  if (handle != nullptr) return driver.contexts.find(handle).get();
  return context_stack().empty() ? nullptr : context_stack().back();
}

CUresult make_child(Driver& driver, const CUDA_CHILD_GRAPH_NODE_PARAMS& params, ChildWork* work) {
  const std::shared_ptr<Graph> graph = driver.graphs.find(params.graph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (graph->parent() != nullptr) return CUDA_ERROR_INVALID_VALUE;
    work->graph = graph;
    return CUDA_SUCCESS;
  }
  if (graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
  work->graph = graph->clone();
  return CUDA_SUCCESS;
}

CUresult make_event(Driver& driver, CUevent handle, std::shared_ptr<Event>* event) {
  *event = driver.events.find(handle);
  return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult make_alloc(Driver& driver, Context* context, CUDA_MEM_ALLOC_NODE_PARAMS_v2& params, AllocWork* work) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (params.bytesize == 0 || params.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  work->memory = driver.graph_memories.allocate(*context, params.bytesize);
  if (work->memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  params.dptr = work->memory->address();
  return CUDA_SUCCESS;
}

/// Fills a new alternative of the content's work.
template <class Kind, class Make>
CUresult make(NodeContent* content, Make&& make_it) {
  return make_it(content->work.emplace<Kind>());
}

}  // namespace

CUresult make_content(Driver& driver, CUgraphNodeParams& params, NodeContent* content) {
  content->context = context_of(driver, nullptr);
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      if (params.kernel.ctx != nullptr) content->context = context_of(driver, params.kernel.ctx);
      if (content->context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
      CUDA_KERNEL_NODE_PARAMS kernel{};
      static_assert(sizeof kernel == sizeof params.kernel);
      std::memcpy(&kernel, &params.kernel, sizeof kernel);
      return make<KernelWork>(content,
                              [&](KernelWork& work) { return make_kernel(driver, *content->context, kernel, &work); });
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      content->context = context_of(driver, params.memcpy.copyCtx);
      return make<CopyWork>(content, [&](CopyWork& work) {
        work.what = params.memcpy.copyParams;
        return check_copy(driver, work.what);
      });
    case CU_GRAPH_NODE_TYPE_MEMSET:
      content->context = context_of(driver, params.memset.ctx);
      return make<SetWork>(content, [&](SetWork& work) {
        std::memcpy(&work.what, &params.memset, sizeof work.what);
        return check_set(driver, work.what);
      });
    case CU_GRAPH_NODE_TYPE_HOST:
      return make<HostWork>(content, [&](HostWork& work) {
        work = {params.host.fn, params.host.userData};
        return work.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      });
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return make<ChildWork>(content, [&](ChildWork& work) { return make_child(driver, params.graph, &work); });
    case CU_GRAPH_NODE_TYPE_EMPTY:
      content->work = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return make<WaitWork>(content,
                            [&](WaitWork& work) { return make_event(driver, params.eventWait.event, &work.event); });
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return make<RecordWork>(
          content, [&](RecordWork& work) { return make_event(driver, params.eventRecord.event, &work.event); });
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return make<AllocWork>(
          content, [&](AllocWork& work) { return make_alloc(driver, content->context, params.alloc, &work); });
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return make<FreeWork>(content, [&](FreeWork& work) {
        work.memory = driver.graph_memories.find(params.free.dptr);
        return work.memory != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      });
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      content->context = context_of(driver, params.memOp.ctx);
      return make<BatchWork>(content, [&](BatchWork& work) {
        if (params.memOp.count > 256 || params.memOp.paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
        work.steps.assign(params.memOp.paramArray, params.memOp.paramArray + params.memOp.count);
        return check_batch(driver, work.steps);
      });
    default:  // conditional nodes, external semaphores
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

bool ordinary_edges(const CUgraphEdgeData* data, std::size_t count) {
  return data == nullptr || std::all_of(data, data + count, [](const CUgraphEdgeData& edge) {
           return edge.from_port == 0 && edge.to_port == 0 && edge.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT;
         });
}

bool find_nodes(Driver& driver, const Graph& graph, const CUgraphNode* handles, std::size_t count,
                std::vector<Node*>* nodes) {
  if (count != 0 && handles == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<Node> node = driver.nodes.find(handles[i]);
    if (node == nullptr || node->graph != &graph) return false;
    if (std::find(nodes->begin(), nodes->end(), node.get()) != nodes->end()) return false;
    nodes->push_back(node.get());
  }
  return true;
}

CUgraphNodeParams params_of(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::memcpy(&params.kernel, &kernel, sizeof kernel);
  return params;
}

CUgraphNodeParams params_of(const CUDA_KERNEL_NODE_PARAMS_v1& kernel) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::memcpy(&params.kernel, &kernel, sizeof kernel);
  return params;
}

CUgraphNodeParams params_of(const CUDA_MEMCPY3D& copy, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyParams = copy;
  params.memcpy.copyCtx = context;
  return params;
}

CUgraphNodeParams params_of(const CUDA_MEMSET_NODE_PARAMS& set, CUcontext context) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  std::memcpy(&params.memset, &set, sizeof set);
  params.memset.ctx = context;
  return params;
}

CUgraphNodeParams params_of(const CUDA_HOST_NODE_PARAMS& host) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = host.fn;
  params.host.userData = host.userData;
  return params;
}

CUgraphNodeParams params_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  params.memOp.ctx = batch.ctx;
  params.memOp.count = batch.count;
  params.memOp.paramArray = batch.paramArray;
  params.memOp.flags = batch.flags;
  return params;
}

CUgraphNodeParams params_of_child(CUgraph graph) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = graph;
  return params;
}

CUgraphNodeParams params_of_event(CUgraphNodeType type, CUevent event) {
  CUgraphNodeParams params{};
  params.type = type;
  params.eventWait.event = event;  // the same place as eventRecord.event
  return params;
}

}  // namespace gpuctl::softgpu
