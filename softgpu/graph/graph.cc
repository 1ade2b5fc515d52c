#include "softgpu/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

namespace gpuctl::softgpu {
namespace {

std::uint64_t next_node_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

std::shared_ptr<Node> Graph::add(Context* context, Work work, const std::vector<Node*>& after) {
  auto node = std::make_shared<Node>();
  node->graph = this;
  node->id = next_node_id();
  node->context = context;
  node->work = std::move(work);
  if (const auto* child = std::get_if<ChildWork>(&node->work)) child->graph->set_parent(node.get());
  for (Node* dependency : after) add_edge(*dependency, *node);
  nodes_.push_back(node);
  return node;
}

void Graph::remove(Node& node) {
  while (!node.dependencies.empty()) remove_edge(*node.dependencies.back(), node);
  while (!node.dependents.empty()) remove_edge(node, *node.dependents.back());
  std::erase_if(nodes_, [&](const auto& one) { return one.get() == &node; });
}

bool Graph::has_edge(const Node& from, const Node& to) {
  return std::find(to.dependencies.begin(), to.dependencies.end(), &from) != to.dependencies.end();
}

void Graph::add_edge(Node& from, Node& to) {
  to.dependencies.push_back(&from);
  from.dependents.push_back(&to);
}

void Graph::remove_edge(Node& from, Node& to) {
  std::erase(to.dependencies, &from);
  std::erase(from.dependents, &to);
}

std::shared_ptr<Graph> Graph::clone() const {
  auto copy = std::make_shared<Graph>();
  std::unordered_map<const Node*, Node*> copies;
  for (const auto& node : nodes_) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = child->graph->clone();
    Node* made = copy->add(node->context, std::move(work), {}).get();
    made->origin = node->id;
    copies[node.get()] = made;
  }
  for (const auto& node : nodes_) {
    for (Node* dependency : node->dependencies) copies[node.get()]->dependencies.push_back(copies[dependency]);
    for (Node* dependent : node->dependents) copies[node.get()]->dependents.push_back(copies[dependent]);
  }
  return copy;
}

Node* Graph::copy_of(std::uint64_t id) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& node) { return node->origin == id; });
  return found == nodes_.end() ? nullptr : found->get();
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    const auto* child = std::get_if<ChildWork>(&node->work);
    return std::holds_alternative<AllocWork>(node->work) || std::holds_alternative<FreeWork>(node->work) ||
           (child != nullptr && child->graph->has_memory_nodes());
  });
}

std::vector<Node*> Graph::in_order() const {
  std::unordered_map<const Node*, std::size_t> waiting;
  std::vector<Node*> result;
  for (const auto& node : nodes_) {
    waiting[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) result.push_back(node.get());
  }
  for (std::size_t next = 0; next < result.size(); ++next) {
    for (Node* dependent : result[next]->dependents) {
      if (--waiting[dependent] == 0) result.push_back(dependent);
    }
  }
  return result;
}

}  // namespace gpuctl::softgpu
