#include "libgpuslice/graphs/graph_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/graphs/graph_nodes.h"

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

/// The attributes that the driver knows of such nodes. To ask for another one takes a driver ten times as long.
std::vector<CUlaunchAttributeID> known_attributes(CUgraphNode node) {
  constexpr int kMostAttributes = 32;
  std::vector<CUlaunchAttributeID> known;
  for (int number = CU_LAUNCH_ATTRIBUTE_IGNORE + 1; number < kMostAttributes; ++number) {
    Value value;
    const auto id = static_cast<CUlaunchAttributeID>(number);
    if (get(node, id, value)) known.push_back(id);
  }
  return known;
}

/// Whether two nodes are alike in everything that a launch cannot say too, as far as the driver knows it.
bool alike(CUgraphNode a, CUgraphNode b, const std::vector<CUlaunchAttributeID>& known) {
  return std::ranges::all_of(known, [&](CUlaunchAttributeID id) {
    Value first, second;
    return !get(a, id, first) || !get(b, id, second) || std::memcmp(&first, &second, sizeof first) == 0;
  });
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

/// Launches the kernel of `node` into the stream, which is captured. Returns its new node, which has no edges. Null:
/// the driver refused.
CUgraphNode launch_again(CUgraphNode node, CUstream stream) {
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
  CUfunction function = params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
  CUstreamCaptureStatus status{};
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const bool captured =
      d.cuStreamUpdateCaptureDependencies_v2(stream, nullptr, nullptr, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES) ==
          CUDA_SUCCESS &&
      d.cuLaunchKernelEx(&config, function, params.kernelParams, params.extra) == CUDA_SUCCESS &&
      d.cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &last, nullptr, &count) == CUDA_SUCCESS;
  return captured && count == 1 ? last[0] : nullptr;
}

/// Captures the kernels of these nodes of `graph` into it again, all in one capture, as the end of each looks at the
/// whole graph. Fewer than there are nodes: the driver refused.
std::vector<CUgraphNode> capture_again(CUgraph graph, const std::vector<CUgraphNode>& nodes, CUstream stream) {
  const Driver& d = driver();
  std::vector<CUgraphNode> captured;
  if (nodes.empty() ||
      d.cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
    return captured;
  for (const CUgraphNode node : nodes) {
    CUgraphNode again = launch_again(node, stream);
    if (!again) break;
    captured.push_back(again);
  }
  CUgraph same = nullptr;
  if (d.cuStreamEndCapture(stream, &same) != CUDA_SUCCESS) captured.clear();
  return captured;
}

/// Puts `to`, which has no edges, in the place of `from`.
bool replace(CUgraph graph, CUgraphNode from, CUgraphNode to) {
  const Driver& d = driver();
  Edges before, after;
  if (!read(d.cuGraphNodeGetDependencies_v2, from, before) || !read(d.cuGraphNodeGetDependentNodes_v2, from, after))
    return false;
  const std::vector<CUgraphNode> itself(std::max(before.nodes.size(), after.nodes.size()), to);
  const auto add = [&](const CUgraphNode* begin, const CUgraphNode* end, const Edges& edges) {
    return edges.nodes.empty() ||
           d.cuGraphAddDependencies_v2(graph, begin, end, edges.data.data(), edges.nodes.size()) == CUDA_SUCCESS;
  };
  return add(before.nodes.data(), itself.data(), before) && add(itself.data(), after.nodes.data(), after) &&
         d.cuGraphDestroyNode(from) == CUDA_SUCCESS;
}

/// Puts all kernels of `graph`, and of graphs in it, into the part.
bool move_all(CUgraph graph, CUstream stream) {
  const Driver& d = driver();
  const std::optional<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes) return false;
  std::vector<CUgraphNode> kernels;
  for (const CUgraphNode node : *nodes) {
    CUgraphNodeType type{};
    if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) kernels.push_back(node);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    if (d.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS || !move_all(child, stream)) return false;
  }
  const std::vector<CUgraphNode> moved = capture_again(graph, kernels, stream);
  if (moved.size() != kernels.size()) return false;
  if (kernels.empty()) return true;
  const std::vector<CUlaunchAttributeID> known = known_attributes(kernels[0]);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (!alike(kernels[i], moved[i], known) || !replace(graph, kernels[i], moved[i])) return false;
  return true;
}

}  // namespace

bool can_copy_graphs() {
  const Driver& d = driver();
  return d.cuGraphClone && d.cuGraphGetNodes && d.cuGraphNodeGetType && d.cuGraphChildGraphNodeGetGraph &&
         d.cuGraphNodeGetDependencies_v2 && d.cuGraphNodeGetDependentNodes_v2 && d.cuGraphAddDependencies_v2 &&
         d.cuGraphDestroyNode && d.cuGraphDestroy && d.cuGraphKernelNodeGetParams_v2 &&
         d.cuGraphKernelNodeGetAttribute && d.cuGraphInstantiateWithFlags && d.cuGraphExecDestroy &&
         d.cuStreamBeginCaptureToGraph && d.cuStreamUpdateCaptureDependencies_v2 && d.cuStreamGetCaptureInfo_v3 &&
         d.cuStreamEndCapture && d.cuLaunchKernelEx;
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
