// cuGraph*: graphs, the order of their nodes, and queries about them.
#include "softgpu/graph_api/graph.h"

#include <algorithm>

#include "softgpu/api/older.h"

using namespace gpuctl::softgpu;

namespace gpuctl::softgpu {

CUresult give_nodes(const std::vector<Node*>& found, CUgraphNode* nodes, CUgraphEdgeData* edges, std::size_t* count) {
  if (count == nullptr || (nodes == nullptr && edges != nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (nodes == nullptr) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i) {
    nodes[i] = i < found.size() ? handle_of(*found[i]) : nullptr;
    if (edges != nullptr) edges[i] = CUgraphEdgeData{};
  }
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

}  // namespace gpuctl::softgpu

namespace {

struct Edge {
  Node* from;
  Node* to;
};

/// Finds the nodes of pairs. False if they are not all of that graph, or a pair is given twice.
bool find_edges(Driver& driver, const Graph& graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count,
                std::vector<Edge>* edges) {
  if (count != 0 && (from == nullptr || to == nullptr)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<Node> a = driver.nodes.find(from[i]);
    const std::shared_ptr<Node> b = driver.nodes.find(to[i]);
    if (a == nullptr || b == nullptr || a == b || a->graph != &graph || b->graph != &graph) return false;
    const bool twice = std::any_of(edges->begin(), edges->end(),
                                   [&](const Edge& edge) { return edge.from == a.get() && edge.to == b.get(); });
    if (twice) return false;
    edges->push_back({a.get(), b.get()});
  }
  return true;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* result, unsigned int flags) {
  return with_driver([&](Driver& driver) {
    if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(driver.graph_mutex);
    *result = driver.add_graph(std::make_shared<Graph>());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return with_graph(handle, [](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if (graph->parent() != nullptr) return CUDA_ERROR_INVALID_VALUE;
    driver.destroy_graph(graph);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphClone(CUgraph* result, CUgraph handle) {
  return with_graph(handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    *result = driver.add_graph(graph->clone());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* result, CUgraphNode original, CUgraph clone) {
  return with_node(original, [&](Driver& driver, const std::shared_ptr<Node>& node) {
    const std::shared_ptr<Graph> graph = driver.graphs.find(clone);
    if (result == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Node* copy = graph->copy_of(node->id);
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = handle_of(*copy);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return with_graph(handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    std::vector<Node*> found;
    for (const auto& node : graph->nodes()) found.push_back(node.get());
    return give_nodes(found, nodes, nullptr, count);
  });
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return with_graph(handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    std::vector<Node*> found;
    for (const auto& node : graph->nodes()) {
      if (node->dependencies.empty()) found.push_back(node.get());
    }
    return give_nodes(found, nodes, nullptr, count);
  });
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                    size_t* count) {
  return with_graph(handle, [&](Driver&, const std::shared_ptr<Graph>& graph) {
    if ((from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node*> starts;
    std::vector<Node*> ends;
    for (const auto& node : graph->nodes()) {
      for (Node* dependent : node->dependents) {
        starts.push_back(node.get());
        ends.push_back(dependent);
      }
    }
    std::size_t room = count != nullptr ? *count : 0;
    const CUresult given = give_nodes(starts, from, nullptr, count);
    return given == CUDA_SUCCESS && to != nullptr ? give_nodes(ends, to, data, &room) : given;
  });
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                                               size_t* count) {
  return with_node(handle, [&](Driver&, const std::shared_ptr<Node>& node) {
    return give_nodes(node->dependencies, nodes, data, count);
  });
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                                                 size_t* count) {
  return with_node(handle, [&](Driver&, const std::shared_ptr<Node>& node) {
    return give_nodes(node->dependents, nodes, data, count);
  });
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                           const CUgraphEdgeData* data, size_t count) {
  return with_graph(handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    std::vector<Edge> edges;
    if (!ordinary_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    if (!find_edges(driver, *graph, from, to, count, &edges)) return CUDA_ERROR_INVALID_VALUE;
    for (const Edge& edge : edges) {
      if (Graph::has_edge(*edge.from, *edge.to)) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const Edge& edge : edges) Graph::add_edge(*edge.from, *edge.to);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                              const CUgraphEdgeData* data, size_t count) {
  return with_graph(handle, [&](Driver& driver, const std::shared_ptr<Graph>& graph) {
    std::vector<Edge> edges;
    if (!ordinary_edges(data, count)) return CUDA_ERROR_INVALID_VALUE;
    if (!find_edges(driver, *graph, from, to, count, &edges)) return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    for (const Edge& edge : edges) {
      if (!Graph::has_edge(*edge.from, *edge.to)) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const Edge& edge : edges) Graph::remove_edge(*edge.from, *edge.to);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return with_node(handle, [&](Driver&, const std::shared_ptr<Node>& node) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->work);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode handle) {
  return with_node(handle, [](Driver& driver, const std::shared_ptr<Node>& node) {
    if (node->graph->has_memory_nodes()) return CUDA_ERROR_NOT_SUPPORTED;
    driver.remove_node(node);
    node->graph->remove(*node);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
