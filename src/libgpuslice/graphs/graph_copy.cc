#include "libgpuslice/graphs/graph_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

namespace {

constexpr char kCannot[] = "it is part of a graph that the driver does not copy";
constexpr char kNotThere[] = "it is part of a graph with a kernel that does not run in a part of the GPU";

/// What a launch can say of a kernel node. Edges say what programmatic launches and events did.
constexpr std::array kOfLaunches = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

using Value = CUlaunchAttributeValue;

/// False if the driver does not know the attribute.
bool get(CUgraphNode node, CUlaunchAttributeID id, Value& value) {
  value = {};
  return driver().cuGraphKernelNodeGetAttribute(node, id, &value) == CUDA_SUCCESS;
}

/// Whether two nodes are alike in everything that a launch cannot say too, as far as the driver knows it.
bool alike(CUgraphNode a, CUgraphNode b) {
  constexpr int kMostAttributes = 32;
  for (int id = CU_LAUNCH_ATTRIBUTE_IGNORE + 1; id < kMostAttributes; ++id) {
    Value first, second;
    const auto which = static_cast<CUlaunchAttributeID>(id);
    if (get(a, which, first) && get(b, which, second) && std::memcmp(&first, &second, sizeof first) != 0) return false;
  }
  return true;
}

/// The attributes that the node has.
std::vector<CUlaunchAttribute> attributes_of(CUgraphNode node) {
  std::vector<CUlaunchAttribute> all;
  const Value unset{};
  for (const CUlaunchAttributeID id : kOfLaunches) {
    CUlaunchAttribute attribute{};
    attribute.id = id;
    const bool is_set = get(node, id, attribute.value) && std::memcmp(&attribute.value, &unset, sizeof unset) != 0;
    if (is_set || id == CU_LAUNCH_ATTRIBUTE_PRIORITY) all.push_back(attribute);
  }
  return all;
}

struct Edges {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> data;
};

/// `list`: cuGraphNodeGetDependencies_v2 or cuGraphNodeGetDependentNodes_v2.
template <class List>
bool read(List list, CUgraphNode node, Edges& out) {
  std::size_t count = 0;
  if (list(node, nullptr, nullptr, &count) != CUDA_SUCCESS) return false;
  out.nodes.resize(count);
  out.data.resize(count);
  return count == 0 || list(node, out.nodes.data(), out.data.data(), &count) == CUDA_SUCCESS;
}

/// Captures the kernel of `node` into `graph`, with no edges. Null: the driver refused.
CUgraphNode capture_again(CUgraph graph, CUgraphNode node, CUstream stream) {
  const Driver& d = driver();
  CUDA_KERNEL_NODE_PARAMS params{};
  if (d.cuGraphKernelNodeGetParams_v2(node, &params) != CUDA_SUCCESS) return nullptr;
  std::vector<CUlaunchAttribute> attributes = attributes_of(node);
  const CUlaunchConfig config{.gridDimX = params.gridDimX,
                              .gridDimY = params.gridDimY,
                              .gridDimZ = params.gridDimZ,
                              .blockDimX = params.blockDimX,
                              .blockDimY = params.blockDimY,
                              .blockDimZ = params.blockDimZ,
                              .sharedMemBytes = params.sharedMemBytes,
                              .hStream = stream,
                              .attrs = attributes.data(),
                              .numAttrs = static_cast<unsigned>(attributes.size())};
  if (d.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
    return nullptr;
  CUfunction function = params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
  const CUresult launched = d.cuLaunchKernelEx(&config, function, params.kernelParams, params.extra);
  CUstreamCaptureStatus status{};
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const bool asked =
      d.cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &last, nullptr, &count) == CUDA_SUCCESS;
  CUgraphNode captured = asked && count == 1 ? last[0] : nullptr;
  CUgraph same = nullptr;
  const CUresult ended = d.cuStreamEndCapture(stream, &same);
  return launched == CUDA_SUCCESS && ended == CUDA_SUCCESS ? captured : nullptr;
}

/// Puts a kernel of `graph` into the part.
bool move(CUgraph graph, CUgraphNode node, CUstream stream) {
  const Driver& d = driver();
  Edges before, after;
  if (!read(d.cuGraphNodeGetDependencies_v2, node, before) || !read(d.cuGraphNodeGetDependentNodes_v2, node, after))
    return false;
  CUgraphNode moved = capture_again(graph, node, stream);
  if (!moved || !alike(node, moved)) return false;
  const std::vector<CUgraphNode> itself(std::max(before.nodes.size(), after.nodes.size()), moved);
  const auto add = [&](const CUgraphNode* from, const CUgraphNode* to, const Edges& edges) {
    return edges.nodes.empty() ||
           d.cuGraphAddDependencies_v2(graph, from, to, edges.data.data(), edges.nodes.size()) == CUDA_SUCCESS;
  };
  return add(before.nodes.data(), itself.data(), before) && add(itself.data(), after.nodes.data(), after) &&
         d.cuGraphDestroyNode(node) == CUDA_SUCCESS;
}

/// Puts all kernels of `graph`, and of graphs in it, into the part.
bool move_all(CUgraph graph, CUstream stream) {
  const Driver& d = driver();
  std::size_t count = 0;
  if (d.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && d.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return false;
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && !move(graph, node, stream)) return false;
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    if (d.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS || !move_all(child, stream)) return false;
  }
  return true;
}

}  // namespace

bool can_copy_graphs() {
  const Driver& d = driver();
  return d.cuGraphClone && d.cuGraphGetNodes && d.cuGraphNodeGetType && d.cuGraphChildGraphNodeGetGraph &&
         d.cuGraphNodeGetDependencies_v2 && d.cuGraphNodeGetDependentNodes_v2 && d.cuGraphAddDependencies_v2 &&
         d.cuGraphDestroyNode && d.cuGraphDestroy && d.cuGraphKernelNodeGetParams_v2 &&
         d.cuGraphKernelNodeGetAttribute && d.cuGraphInstantiateWithFlags && d.cuGraphExecDestroy &&
         d.cuStreamBeginCaptureToGraph && d.cuStreamGetCaptureInfo_v3 && d.cuStreamEndCapture && d.cuLaunchKernelEx;
}

CUgraph clone_of(CUgraph graph) {
  CUgraph clone = nullptr;
  return can_copy_graphs() && driver().cuGraphClone(&clone, graph) == CUDA_SUCCESS ? clone : nullptr;
}

GraphCopy copy_in_part(CUgraph graph, unsigned long long flags, CUstream stream) {
  CUgraph clone = clone_of(graph);
  if (!clone) return {.none = kCannot};
  GraphCopy copy;
  flags &= ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);  // the function does not take it
  const bool moved = move_all(clone, stream);
  if (!moved || driver().cuGraphInstantiateWithFlags(&copy.exec, clone, flags) != CUDA_SUCCESS)
    copy = {.none = kNotThere};
  driver().cuGraphDestroy(clone);
  return copy;
}

}  // namespace gpuslice
