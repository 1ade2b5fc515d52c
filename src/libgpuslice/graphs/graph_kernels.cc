#include "libgpuslice/graphs/graph_kernels.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/graphs/graph_nodes.h"
#include "libgpuslice/graphs/graph_shape.h"
#include "libgpuslice/image/launch_params.h"
#include "libgpuslice/image/own_cluster.h"
#include "libgpuslice/image/whole_grid.h"
#include "libgpuslice/modules/first_launch.h"

namespace gpuslice {

namespace {

constexpr char kUnknown[] = "the driver does not say what it is made of";
constexpr char kConditional[] = "it has conditional nodes";
constexpr char kProgrammatic[] = "it may start before what it depends on has ended";
constexpr char kBlocksWait[] = "it is part of a graph with a kernel whose blocks wait for each other";
constexpr char kMayWait[] = "it is part of a graph that may wait for the program";
constexpr char kUpdatable[] = "it is part of a graph with a kernel that the device may change";
constexpr char kAttributes[] = "cooperative, in clusters, changed by the device, or of the greatest priority";

struct Edge {
  std::size_t from, to;
  bool ordinary;  ///< the second node starts only after the first is fully complete
};

struct Nodes {
  std::vector<CUgraphNode> handles;
  std::vector<Edge> edges;
};

bool list_nodes(CUgraph graph, Nodes& out) {
  const Driver& d = driver();
  std::optional<std::vector<CUgraphNode>> nodes = nodes_of(graph);
  if (!nodes) return false;
  out.handles = std::move(*nodes);
  std::size_t edges = 0;
  if (d.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &edges) != CUDA_SUCCESS) return false;
  std::vector<CUgraphNode> from(edges), to(edges);
  std::vector<CUgraphEdgeData> data(edges);
  if (edges > 0 && d.cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &edges) != CUDA_SUCCESS)
    return false;
  std::unordered_map<CUgraphNode, std::size_t> numbers;
  for (std::size_t i = 0; i < out.handles.size(); ++i) numbers[out.handles[i]] = i;
  for (std::size_t i = 0; i < edges; ++i) {
    const auto a = numbers.find(from[i]), b = numbers.find(to[i]);
    if (a == numbers.end() || b == numbers.end()) return false;
    out.edges.push_back({a->second, b->second, data[i].from_port == 0 && data[i].to_port == 0 && data[i].type == 0});
  }
  return true;
}

/// Whether attributes of a node force its kernel to keep its form. An attribute that the driver does not know is not
/// set. Notes in `out` what they mean for a copy of the graph.
bool attributes_refuse(CUgraphNode node, bool uses_priorities, GraphKernels& out) {
  CUlaunchAttributeValue value{};
  const auto has = [&](CUlaunchAttributeID id) {
    value = {};
    return driver().cuGraphKernelNodeGetAttribute(node, id, &value) == CUDA_SUCCESS;
  };
  const bool cooperative = has(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) && value.cooperative;
  if (cooperative) out.not_in_part = kBlocksWait;
  std::uint64_t cluster = 1;
  if (has(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) && value.clusterDim.x > 0)
    cluster = std::uint64_t{value.clusterDim.x} * value.clusterDim.y * value.clusterDim.z;
  out.cluster = std::max(out.cluster, cluster);
  const bool updatable =
      has(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) && value.deviceUpdatableKernelNode.deviceUpdatable;
  if (updatable) out.not_in_part = kUpdatable;
  if (cooperative || cluster > 1 || updatable) return true;
  // The greatest priority is only for the agent (priority_band.h).
  int least = 0, greatest = 0;
  return uses_priorities && has(CU_LAUNCH_ATTRIBUTE_PRIORITY) &&
         driver().cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS && value.priority <= greatest &&
         greatest < least;
}

/// Whether such a node may wait for something that the GPU does not do by itself.
bool may_wait(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return false;
    default:
      return true;
  }
}

/// The fewest SMs for the kernel of a node. Whether its blocks wait may become known later, but its copy is made of
/// what is known now.
std::uint32_t least_sms_in_graph(const GraphKernel& kernel, CUfunction function) {
  const Context* context = function ? Contexts::current() : nullptr;
  if (!context || !kernel.config.threads()) return 0;
  const GrantView& view = context->view();
  return least_sms_of(kernel.kernel.get(), {.function = function,
                                            .blocks = kernel.config.block_tasks(),
                                            .threads = kernel.config.threads(),
                                            .shared = kernel.config.shared,
                                            .sms = view.sms(),
                                            .told = ToldSms::get().told(view.device_index(), view.sms())});
}

void collect(CUgraph graph, bool uses_priorities, const std::vector<CUgraphNode>& inside, GraphKernels& out) {
  const Driver& d = driver();
  Nodes nodes;
  if (!list_nodes(graph, nodes)) {
    out.cannot_be_read(kUnknown);
    return;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  std::vector<bool> programmatic(nodes.handles.size(), false);
  for (const Edge& edge : nodes.edges) {
    edges.emplace_back(edge.from, edge.to);
    if (!edge.ordinary) programmatic[edge.from] = programmatic[edge.to] = true;
  }
  const GraphShape shape = shape_of(nodes.handles.size(), edges);
  out.chain &= shape.chain;
  for (const std::size_t number : shape.order) {
    const CUgraphNode node = nodes.handles[number];
    CUgraphNodeType type{};
    if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      out.cannot_be_read(kUnknown);
      return;
    }
    if (may_wait(type)) {
      out.may_wait = true;
      out.not_in_part = kMayWait;
    }
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) out.refused = out.not_in_part = kConditional;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      if (d.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) {
        out.cannot_be_read(kUnknown);
        return;
      }
      std::vector<CUgraphNode> path = inside;
      path.push_back(node);
      collect(child, uses_priorities, path, out);
    }
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    GraphKernel kernel;
    kernel.node = node;
    kernel.inside = inside;
    if (programmatic[number]) kernel.not_in_this_graph = kProgrammatic;
    if (attributes_refuse(node, uses_priorities, out)) kernel.not_in_this_graph = kAttributes;
    CUDA_KERNEL_NODE_PARAMS params{};
    if (d.cuGraphKernelNodeGetParams_v2(node, &params) == CUDA_SUCCESS) read_params(params, kernel);
    if (kernel.kernel && kernel.kernel->waits_by_name) out.not_in_part = kBlocksWait;
    CUfunction function = params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
    out.least = std::max(out.least, least_sms_in_graph(kernel, function));
    if (kernel.kernel && function)
      out.cluster = std::max<std::uint64_t>(out.cluster, own_cluster(*kernel.kernel, function));
    out.kernels.push_back(std::move(kernel));
  }
}

/// The kernel of a node, by a handle that the program may never have seen: the driver may have resolved a CUkernel to a
/// CUfunction of the context.
std::shared_ptr<KernelInfo> find_kernel(const CUDA_KERNEL_NODE_PARAMS& params) {
  Kernels& all = Kernels::get();
  if (params.kern) {
    if (std::shared_ptr<KernelInfo> known = all.find_shared(params.kern)) return known;
  }
  if (!params.func) return nullptr;
  if (std::shared_ptr<KernelInfo> known = all.find_shared(params.func)) return known;
  const char* name = nullptr;
  if (!driver().cuFuncGetName || driver().cuFuncGetName(&name, params.func) != CUDA_SUCCESS || !name) return nullptr;
  for (const auto& [handle, kernel] : all.library_kernels(name)) {
    CUfunction function = nullptr;
    auto* const library_kernel = static_cast<CUkernel>(const_cast<void*>(handle));
    if (driver().cuKernelGetFunction(&function, library_kernel) != CUDA_SUCCESS || function != params.func) continue;
    all.add(function, kernel);
    return kernel;
  }
  return nullptr;
}

}  // namespace

GraphKernels look_at_graph(CUgraph graph, bool uses_priorities) {
  const Driver& d = driver();
  GraphKernels out;
  if (!d.cuGraphGetNodes || !d.cuGraphGetEdges_v2 || !d.cuGraphNodeGetType || !d.cuGraphChildGraphNodeGetGraph ||
      !d.cuGraphKernelNodeGetParams_v2 || !d.cuGraphKernelNodeGetAttribute || !d.cuGraphExecKernelNodeSetParams_v2) {
    out.cannot_be_read(kUnknown);
    return out;
  }
  collect(graph, uses_priorities, {}, out);
  return out;
}

void read_params(const CUDA_KERNEL_NODE_PARAMS& params, GraphKernel& out) {
  out.original = params;
  out.original.kernelParams = nullptr;
  out.original.extra = nullptr;
  out.instance = nullptr;
  out.config = {.grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
                .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
                .shared = params.sharedMemBytes,
                .stream = nullptr};
  out.kernel = find_kernel(params);
  KernelInfo* kernel = out.kernel.get();
  Context* context = kernel ? Contexts::current() : nullptr;
  if (!context || (params.ctx && params.ctx != context->handle())) return;
  load_before_first_launch(kernel, params.func ? params.func : reinterpret_cast<CUfunction>(params.kern));
  if (kernel->background && !kernel->persistent) {
    kernel->background->load_if_idle();
    if (!kernel->persistent)
      kernel->original_in_graph = "it was made ready to run before its persistent form was there";
  }
  if (!kernel->persistent || out.not_in_this_graph || !out.config.threads() ||
      !fits_whole_warps(*kernel, out.config.grid, out.config.block))
    return;
  if (pack(*kernel, params.kernelParams, params.extra, out.values)) out.instance = context->instance_of(*kernel);
}

}  // namespace gpuslice
