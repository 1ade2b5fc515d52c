// cuGraphExecUpdate: pairs the nodes of two graphs, and checks the differences between the two nodes of a pair.
//
// The nodes on which no other node depends are paired in the order in which they were made; from there, dependencies
// are paired in the order of their edges. So the same steps of building or capturing give the same pairs.
#include <algorithm>
#include <unordered_map>

#include "softgpu/graph/exec.h"

namespace gpuctl::softgpu {
namespace {

CUresult refuse(CUgraphExecUpdateResultInfo* info, CUgraphExecUpdateResult why, const Node* node,
                const Node* from = nullptr) {
  info->result = why;
  info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<Node*>(node));
  info->errorFromNode = reinterpret_cast<CUgraphNode>(const_cast<Node*>(from));
  return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

std::vector<Node*> last_nodes(const Graph& graph) {
  std::vector<Node*> result;
  for (const auto& node : graph.nodes()) {
    if (node->dependents.empty()) result.push_back(node.get());
  }
  return result;
}

bool same_shape(const CUDA_MEMSET_NODE_PARAMS& a, const CUDA_MEMSET_NODE_PARAMS& b) {
  const bool flat = a.height <= 1 && b.height <= 1;
  return flat || (a.height == b.height && a.width == b.width && a.pitch == b.pitch && a.elementSize == b.elementSize);
}

int own_priority(const KernelWork& kernel) {
  const auto found = kernel.attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
  return found == kernel.attributes.end() ? 0 : found->second.priority;
}

/// Whether `mine` can become `other`, which is of the same type.
CUgraphExecUpdateResult compare(const Node& mine, const Node& other, unsigned long long flags) {
  if (const auto* kernel = std::get_if<KernelWork>(&mine.work)) {
    if (mine.context != other.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    const bool by_node = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
    if (by_node && own_priority(*kernel) != own_priority(std::get<KernelWork>(other.work))) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    }
  } else if (const auto* copy = std::get_if<CopyWork>(&mine.work)) {
    const CUDA_MEMCPY3D& changed = std::get<CopyWork>(other.work).what;
    const bool same =
        copy->what.srcMemoryType == changed.srcMemoryType && copy->what.dstMemoryType == changed.dstMemoryType;
    if (!same) return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  } else if (const auto* set = std::get_if<SetWork>(&mine.work)) {
    if (!same_shape(set->what, std::get<SetWork>(other.work).what))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  } else if (std::holds_alternative<AllocWork>(mine.work) || std::holds_alternative<FreeWork>(mine.work)) {
    return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

}  // namespace

CUresult GraphExec::pair_up(const Graph& mine, const Graph& other, Changes* changes,
                            CUgraphExecUpdateResultInfo* info) const {
  constexpr auto kTopology = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (mine.nodes().size() != other.nodes().size()) return refuse(info, kTopology, nullptr);
  const std::vector<Node*> my_last = last_nodes(mine);
  const std::vector<Node*> other_last = last_nodes(other);
  if (my_last.size() != other_last.size()) {
    return refuse(info, kTopology, other_last.empty() ? nullptr : other_last.back());
  }
  Changes pairs;
  std::unordered_map<const Node*, const Node*> partner;  // both ways
  const auto pair = [&](Node* a, const Node* b) {
    partner[a] = b;
    partner[b] = a;
    pairs.emplace_back(a, b);
  };
  for (std::size_t i = 0; i < my_last.size(); ++i) pair(my_last[i], other_last[i]);
  for (std::size_t next = 0; next < pairs.size(); ++next) {
    const auto [a, b] = pairs[next];
    if (a->dependencies.size() != b->dependencies.size()) return refuse(info, kTopology, b);
    for (std::size_t k = 0; k < a->dependencies.size(); ++k) {
      Node* from = a->dependencies[k];
      Node* other_from = b->dependencies[k];
      const bool known = partner.count(from) != 0 || partner.count(other_from) != 0;
      if (!known) {
        pair(from, other_from);
      } else if (partner[from] != other_from) {
        return refuse(info, kTopology, b, other_from);
      }
    }
  }
  for (const auto& [a, b] : pairs) {
    if (a->work.index() != b->work.index()) return refuse(info, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b);
    if (const auto* child = std::get_if<ChildWork>(&a->work)) {
      const CUresult inner = pair_up(*child->graph, *std::get<ChildWork>(b->work).graph, changes, info);
      if (inner != CUDA_SUCCESS) return inner;
    } else if (const auto why = compare(*a, *b, flags_); why != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      return refuse(info, why, b);
    } else {
      changes->emplace_back(a, b);
    }
  }
  return CUDA_SUCCESS;
}

CUresult GraphExec::update(const Graph& mine, const Graph& other, CUgraphExecUpdateResultInfo* info) {
  Changes changes;
  const CUresult paired = pair_up(mine, other, &changes, info);
  if (paired != CUDA_SUCCESS) return paired;
  for (const auto& [node, changed] : changes) set_work(*node, changed->work);
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

}  // namespace gpuctl::softgpu
