#include "gpuctld/clients/in_force.h"

#include <algorithm>
#include <array>
#include <optional>

#include "sched/slice.h"

namespace gpuctl::daemon {

namespace {

constexpr std::array<std::string_view, 7> kNames = {"nothing", "max", "reserve", "weights", "jobs", "storm", "always"};

/// What each node of the tree means for the clients in it and outside of it.
struct NodeFacts {
  bool inhabited = false;       ///< it, or a node below it, has a client
  bool own = false;             ///< a client is directly in it
  bool limited = false;         ///< it, or one above it, has a max below the device
  bool beside_reserve = false;  ///< it is outside of a slice with a reserve that matters
  bool uneven = false;          ///< it, or one above it, competes with slices of another weight
};

/// A strict reserve is kept even if its slice has no client; any other one matters only if it has.
bool matters(const sched::NodeInput& node, const NodeFacts& facts) {
  return node.parent >= 0 && node.reserve > sched::CapSM{} && (node.strict || facts.inhabited);
}

/// Whether `inner` is `outer` or below it.
bool is_within(std::span<const sched::NodeInput> nodes, std::size_t inner, std::size_t outer) {
  for (auto n = static_cast<std::int32_t>(inner); n >= 0; n = nodes[static_cast<std::size_t>(n)].parent)
    if (static_cast<std::size_t>(n) == outer) return true;
  return false;
}

/// Compares the weights directly below `parent`: of its inhabited children, and of its own clients as one of default
/// weight.
void compare_children(std::span<const sched::NodeInput> nodes, std::size_t parent, std::vector<NodeFacts>& facts) {
  std::optional<std::uint32_t> weight;
  bool uneven = false;
  const auto compete = [&](std::uint32_t with) {
    uneven |= weight.value_or(with) != with;
    weight = with;
  };
  if (facts[parent].own) compete(sched::kWeightDefault);
  for (std::size_t n = parent + 1; n < nodes.size(); ++n)
    if (nodes[n].parent == static_cast<std::int32_t>(parent) && facts[n].inhabited) compete(nodes[n].weight);
  for (std::size_t n = parent; n < nodes.size(); ++n) facts[n].uneven |= uneven && is_within(nodes, n, parent);
}

std::vector<NodeFacts> facts_of(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                sched::CapSM capacity) {
  std::vector<NodeFacts> facts(nodes.size());
  for (const Resident& client : clients) facts[client.node].own = facts[client.node].inhabited = true;
  for (std::size_t n = nodes.size(); n-- > 1;)  // children before their parents
    facts[static_cast<std::size_t>(nodes[n].parent)].inhabited |= facts[n].inhabited;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    facts[n].limited =
        nodes[n].max < capacity || (nodes[n].parent >= 0 && facts[static_cast<std::size_t>(nodes[n].parent)].limited);
    compare_children(nodes, n, facts);
    if (!matters(nodes[n], facts[n])) continue;
    for (std::size_t other = 0; other < nodes.size(); ++other)
      facts[other].beside_reserve |= !is_within(nodes, other, n);
  }
  return facts;
}

InForce first_reason(const NodeFacts& facts, const Resident& client, const DeviceConditions& where) {
  if (where.storms) return InForce::storm;
  if (facts.limited) return InForce::max;
  if (facts.beside_reserve && !where.time_sliced) return InForce::reserve;
  if (facts.uneven && !where.time_sliced) return InForce::weights;
  if (client.reports_jobs) return InForce::jobs;
  return where.always ? InForce::always : InForce::nothing;
}

}  // namespace

std::string_view name_of(InForce what) {
  return kNames[static_cast<std::size_t>(what)];
}

std::vector<InForce> what_is_in_force(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                      const DeviceConditions& where) {
  const std::vector<NodeFacts> facts = facts_of(nodes, clients, where.capacity);
  std::vector<InForce> found;
  for (const Resident& client : clients) found.push_back(first_reason(facts[client.node], client, where));
  return found;
}

std::vector<bool> beside_reserves_alone(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                        const DeviceConditions& where) {
  std::vector<sched::NodeInput> without(nodes.begin(), nodes.end());
  for (sched::NodeInput& node : without) node.reserve = {};
  const std::vector<InForce> all = what_is_in_force(nodes, clients, where);
  const std::vector<InForce> rest = what_is_in_force(without, clients, where);
  std::vector<bool> found;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    bool has_reserve = false;
    sched::each_up_to_root(nodes, clients[i].node, [&](std::size_t n) {
      has_reserve |= nodes[n].parent >= 0 && nodes[n].reserve > sched::CapSM{};
    });
    found.push_back(all[i] == InForce::reserve && rest[i] == InForce::nothing && !has_reserve && !clients[i].capped);
  }
  return found;
}

}  // namespace gpuctl::daemon
