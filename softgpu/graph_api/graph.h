// Shared by the functions of cuGraph*: finding the object of a handle, and making the work of a node from parameters.
//
// An unknown handle gives CUDA_ERROR_INVALID_VALUE here, as the driver's documentation says. The bodies run with
// Driver::graph_mutex held.
#pragma once

#include <cuda.h>

#include <vector>

#include "softgpu/driver/driver.h"

namespace gpuctl::softgpu {

template <class Body>
CUresult with_graph(CUgraph handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        const std::lock_guard lock(driver.graph_mutex);
        const std::shared_ptr<Graph> graph = driver.graphs.find(handle);
        return graph == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_VALUE) : body(driver, graph);
      },
      call);
}

template <class Body>
CUresult with_node(CUgraphNode handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        const std::lock_guard lock(driver.graph_mutex);
        const std::shared_ptr<Node> node = driver.nodes.find(handle);
        return node == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_VALUE) : body(driver, node);
      },
      call);
}

/// Runs `body(node, work)` with a node whose work is of type `Kind`.
template <class Kind, class Body>
CUresult with_node_of(CUgraphNode handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_node(
      handle,
      [&](Driver&, const std::shared_ptr<Node>& node) {
        auto* work = std::get_if<Kind>(&node->work);
        return work == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_VALUE) : body(*node, *work);
      },
      call);
}

template <class Body>
CUresult with_graph_exec(CUgraphExec handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        const std::lock_guard lock(driver.graph_mutex);
        const std::shared_ptr<GraphExec> exec = driver.graph_execs.find(handle);
        return exec == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_VALUE) : body(driver, *exec);
      },
      call);
}

inline CUgraph handle_of(const Graph& graph) {
  return reinterpret_cast<CUgraph>(const_cast<Graph*>(&graph));
}
inline CUgraphNode handle_of(const Node& node) {
  return reinterpret_cast<CUgraphNode>(const_cast<Node*>(&node));
}

/// The content of a node, made from parameters.
struct NodeContent {
  Work work;
  Context* context = nullptr;  ///< nullptr: that of the launch
};

/// Checks and copies the parameters of a node. The address of an allocation is put into `params`. A child graph is
/// cloned, or moved if the parameters say so.
CUresult make_content(Driver& driver, CUgraphNodeParams& params, NodeContent* content);

/// Finds nodes of a graph by their handles. False if one is not of that graph or is given twice.
bool find_nodes(Driver& driver, const Graph& graph, const CUgraphNode* handles, std::size_t count,
                std::vector<Node*>* nodes);

/// True unless edges are of a kind that the software GPU does not have (programmatic launch).
bool ordinary_edges(const CUgraphEdgeData* data, std::size_t count);

/// Answers a query for nodes in two calls: `nodes` may be nullptr; entries past the last are set to nullptr.
CUresult give_nodes(const std::vector<Node*>& found, CUgraphNode* nodes, CUgraphEdgeData* edges, std::size_t* count);

/// Adds a node to a graph.
CUresult add_node(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                  std::size_t count, CUgraphNodeParams& params, const char* call = __builtin_FUNCTION());

/// Changes the parameters of a node, or of its counterpart in an executable graph; the type stays.
CUresult set_params(CUgraphNode node, CUgraphNodeParams& params, const char* call = __builtin_FUNCTION());
CUresult set_exec_params(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams& params,
                         const char* call = __builtin_FUNCTION());

/// Converts parameters of the functions for one type of node to those of cuGraphAddNode.
CUgraphNodeParams params_of(const CUDA_KERNEL_NODE_PARAMS& kernel);
CUgraphNodeParams params_of(const CUDA_KERNEL_NODE_PARAMS_v1& kernel);
CUgraphNodeParams params_of(const CUDA_MEMCPY3D& copy, CUcontext context);
CUgraphNodeParams params_of(const CUDA_MEMSET_NODE_PARAMS& set, CUcontext context);
CUgraphNodeParams params_of(const CUDA_HOST_NODE_PARAMS& host);
CUgraphNodeParams params_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch);
CUgraphNodeParams params_of_child(CUgraph graph);
CUgraphNodeParams params_of_event(CUgraphNodeType type, CUevent event);

}  // namespace gpuctl::softgpu
