// cuGraphAdd*Node, cuGraph*NodeGetParams, cuGraph*NodeSetParams and their like.
#include <algorithm>
#include <cstring>

#include "softgpu/api/older.h"
#include "softgpu/graph_api/graph.h"

using namespace gpuctl::softgpu;

namespace gpuctl::softgpu {
namespace {

/// Whether `graph` is `outer` or a child graph of it at any depth.
bool is_within(const Graph& graph, CUgraph outer) {
  for (const Graph* one = &graph; one != nullptr; one = one->parent() != nullptr ? one->parent()->graph : nullptr) {
    if (handle_of(*one) == outer) return true;
  }
  return false;
}

}  // namespace

CUresult add_node(CUgraphNode* result, CUgraph handle, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                  std::size_t count, CUgraphNodeParams& params, const char* call) {
  return with_graph(
      handle,
      [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
        if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (!ordinary_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
        std::vector<Node*> after;
        if (!find_nodes(driver, *graph, dependencies, count, &after)) return CUDA_ERROR_INVALID_VALUE;
        if (params.type == CU_GRAPH_NODE_TYPE_GRAPH && is_within(*graph, params.graph.graph)) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        NodeContent content;
        const CUresult made = make_content(driver, params, &content);
        if (made != CUDA_SUCCESS) return made;
        const std::shared_ptr<Node> node = graph->add(content.context, std::move(content.work), after);
        if (const auto* child = std::get_if<ChildWork>(&node->work)) params.graph.graph = handle_of(*child->graph);
        *result = driver.add_node(node);
        return CUDA_SUCCESS;
      },
      call);
}

CUresult set_params(CUgraphNode handle, CUgraphNodeParams& params, const char* call) {
  return with_node(
      handle,
      [&](Driver& driver, const std::shared_ptr<Node>& node) {
        if (params.type != type_of(node->work)) return CUDA_ERROR_INVALID_VALUE;
        if (params.type == CU_GRAPH_NODE_TYPE_GRAPH || params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            params.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        NodeContent content;
        const CUresult made = make_content(driver, params, &content);
        if (made != CUDA_SUCCESS) return made;
        if (auto* kernel = std::get_if<KernelWork>(&content.work)) {
          kernel->attributes = std::get<KernelWork>(node->work).attributes;
        }
        node->work = std::move(content.work);
        node->context = content.context;
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace gpuctl::softgpu

namespace {

template <class Params>
CUresult show_kernel(CUgraphNode handle, Params* params, const char* call = __builtin_FUNCTION()) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_node_of<KernelWork>(
      handle,
      [&](Node& node, KernelWork& work) {
        Node::Shown& shown = node.shown;
        shown.values.clear();
        for (const engine::Param& param : work.launch.kernel->params) {
          shown.values.push_back(work.launch.params.data() + param.offset);
        }
        shown.bytes = work.launch.params.size();
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, work.launch.params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &shown.bytes, CU_LAUNCH_PARAM_END};
        std::copy(std::begin(extra), std::end(extra), shown.extra);
        *params = {};
        params->func = work.func;
        params->gridDimX = work.launch.grid.x;
        params->gridDimY = work.launch.grid.y;
        params->gridDimZ = work.launch.grid.z;
        params->blockDimX = work.launch.block.x;
        params->blockDimY = work.launch.block.y;
        params->blockDimZ = work.launch.block.z;
        params->sharedMemBytes = work.launch.dynamic_shared;
        (work.as_buffer ? params->extra : params->kernelParams) = work.as_buffer ? shown.extra : shown.values.data();
        if constexpr (requires { params->kern; }) {
          params->kern = work.kern;
          params->ctx = reinterpret_cast<CUcontext>(node.context);
        } else if (work.func == nullptr) {
          params->func = reinterpret_cast<CUfunction>(work.kern);
        }
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                   const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_node(result, graph, dependencies, data, count, *params);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : set_params(node, *params);
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  return show_kernel(node, params);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return show_kernel(node, params);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*kernel);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                               CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_node_of<KernelWork>(handle, [&](Node&, KernelWork& work) {
    const auto found = work.attributes.find(attribute);
    *value = found == work.attributes.end() ? CUkernelNodeAttrValue{} : found->second;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                               const CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_node_of<KernelWork>(handle,
                                  [&](Node&, KernelWork& work) { return set_attribute(work, attribute, *value); });
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
  const CUresult found = with_node_of<KernelWork>(from, [&](Node&, KernelWork& work) {
    attributes = work.attributes;
    return CUDA_SUCCESS;
  });
  if (found != CUDA_SUCCESS) return found;
  return with_node_of<KernelWork>(to, [&](Node&, KernelWork& work) {
    work.attributes = std::move(attributes);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMCPY3D* copy, CUcontext context) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*copy, context);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  return with_node_of<CopyWork>(node, [&](Node&, CopyWork& work) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *copy = work.what;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*copy, nullptr);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*set, context);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) {
  return with_node_of<SetWork>(node, [&](Node&, SetWork& work) {
    if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *set = work.what;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*set, nullptr);
  return set_params(node, params);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*host);
  return add_node(result, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) {
  return with_node_of<HostWork>(node, [&](Node&, HostWork& work) {
    if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *host = {work.function, work.data};
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = params_of(*host);
  return set_params(node, params);
}

}  // extern "C"
