#include "libgpuslice/graphs/graph_allocations.h"

#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/graphs/graph_nodes.h"

namespace gpuslice {

namespace {

struct Found {
  std::vector<MemoryNode> nodes;
  CUdevice device = 0;
};

void look_at(CUgraphNode node, Found& found);

void look_through(CUgraph graph, Found& found) {
  for (CUgraphNode node : nodes_of(graph).value_or(std::vector<CUgraphNode>())) look_at(node, found);
}

void look_at(CUgraphNode node, Found& found) {
  const Driver& d = driver();
  CUgraphNodeType type{};
  if (d.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    if (d.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS ||
        params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return;
    found.device = params.poolProps.location.id;
    found.nodes.push_back({.allocates = true, .address = params.dptr, .bytes = params.bytesize});
  } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    CUdeviceptr address = 0;
    if (d.cuGraphMemFreeNodeGetParams(node, &address) == CUDA_SUCCESS) found.nodes.push_back({.address = address});
  } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    CUgraph child = nullptr;
    if (d.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) look_through(child, found);
  }
}

}  // namespace

void note_allocations(CUgraphExec exec, CUgraph graph) {
  const Driver& d = driver();
  if (!d.cuGraphGetNodes || !d.cuGraphNodeGetType || !d.cuGraphMemAllocNodeGetParams ||
      !d.cuGraphMemFreeNodeGetParams || !d.cuGraphChildGraphNodeGetGraph)
    return;
  Found found;
  look_through(graph, found);
  if (const std::uint64_t bytes = least_memory(found.nodes); bytes > 0)
    GraphMemory::get().add(exec, {.device = found.device, .bytes = bytes});
}

std::uint64_t held_by_graphs(CUdevice device) {
  cuuint64_t bytes = 0;
  const auto ask = driver().cuDeviceGetGraphMemAttribute;
  if (!ask || ask(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) != CUDA_SUCCESS)
    return HeldMemory::get().of_graphs(device);
  return bytes;
}

}  // namespace gpuslice
