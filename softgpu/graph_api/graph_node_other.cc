// Nodes that are neither kernels nor copies, memsets or host functions: child graphs, events, memory.
#include "softgpu/api/older.h"
#include "softgpu/graph_api/graph.h"

using namespace gpuctl::softgpu;

extern "C" {

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                     size_t count) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, CUgraph child) {
  CUgraphNodeParams params = params_of_child(child);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return with_node_of<ChildWork>(node, [&](Node&, ChildWork& work) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *graph = handle_of(*work.graph);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                           size_t count, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node_of<RecordWork>(node, [&](Node&, RecordWork& work) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = reinterpret_cast<CUevent>(work.event.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                         size_t count, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return with_node_of<WaitWork>(node, [&](Node&, WaitWork& work) {
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event = reinterpret_cast<CUevent>(work.event.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = params_of_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  if (batch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*batch);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return with_node_of<BatchWork>(handle, [&](Node& node, BatchWork& work) {
    if (batch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *batch = {reinterpret_cast<CUcontext>(node.context), static_cast<unsigned>(work.steps.size()), work.steps.data(),
              0};
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  if (batch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*batch);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                        size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* alloc) {
  if (alloc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps = alloc->poolProps;
  params.alloc.bytesize = alloc->bytesize;
  const CUresult added = add_node(result, graph, dependencies, nullptr, count, params);
  if (added == CUDA_SUCCESS) alloc->dptr = params.alloc.dptr;
  return added;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* alloc) {
  return with_node_of<AllocWork>(node, [&](Node&, AllocWork& work) {
    if (alloc == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *alloc = {};
    alloc->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc->poolProps.location.id = work.memory->device();
    alloc->bytesize = work.memory->bytes();
    alloc->dptr = work.memory->address();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                       size_t count, CUdeviceptr address) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  params.free.dptr = address;
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return with_node_of<FreeWork>(node, [&](Node&, FreeWork& work) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address = work.memory->address();
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
