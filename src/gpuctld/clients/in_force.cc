#include "gpuctld/clients/in_force.h"

#include <algorithm>
#include <array>
#include <optional>

#include "sched/slice.h"

namespace gpuctl::daemon {

namespace {

constexpr std::array<std::string_view, 8> kNames = {"nothing", "quota", "max",   "reserve",
                                                    "weights", "jobs",  "storm", "always"};

/// What each node of the tree means for the clients in it and outside of it.
struct NodeFacts {
  bool inhabited = false;       ///< it, or a node below it, has a client
  bool own = false;             ///< a client is directly in it
  bool has_quota = false;       ///< it, or one above it, has a quota
  bool limited = false;         ///< it, or one above it, has a max below the device
  bool has_reserve = false;     ///< it, or one above it, has a reserve
  bool beside_reserve = false;  ///< it is outside of a slice with a reserve that matters
  bool uneven = false;          ///< it, or one above it, competes with slices of another weight
};

/// A strict reserve is kept even if its slice has no client, and an active one while it is held; otherwise it matters
/// only if there is one.
bool matters(const sched::NodeInput& node, const NodeFacts& facts) {
  return node.parent >= 0 && node.reserve > sched::CapSM{} && (node.keeps_reserve() || facts.inhabited);
}

/// Whether weights differ directly below a node: of its inhabited children, and of its own clients as one of default
/// weight.
struct Competing {
  std::optional<std::uint32_t> weight;
  bool uneven = false;

  void add(std::uint32_t other) {
    uneven |= weight.value_or(other) != other;
    weight = other;
  }
};

/// A node's parent comes before it. Linear: users make slices by the hundred.
std::vector<NodeFacts> facts_of(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                sched::CapSM capacity) {
  std::vector<NodeFacts> facts(nodes.size());
  for (const Resident& client : clients) facts[client.node].own = facts[client.node].inhabited = true;
  std::vector<Competing> below(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (facts[n].own) below[n].add(sched::kWeightDefault);
    if (n == 0 || !facts[n].inhabited) continue;
    const auto parent = static_cast<std::size_t>(nodes[n].parent);
    facts[parent].inhabited = true;
    below[parent].add(nodes[n].weight);
  }
  std::vector<std::size_t> reserves(nodes.size());  // that matter, of the node and of those above it
  std::size_t all_reserves = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool has_parent = nodes[n].parent >= 0;
    const auto parent = static_cast<std::size_t>(has_parent ? nodes[n].parent : 0);
    const NodeFacts above = has_parent ? facts[parent] : NodeFacts{};
    facts[n].has_quota = nodes[n].has_quota || above.has_quota;
    facts[n].limited = nodes[n].max < capacity || above.limited;
    facts[n].has_reserve = has_parent && (nodes[n].reserve > sched::CapSM{} || above.has_reserve);
    facts[n].uneven = below[n].uneven || above.uneven;
    const std::size_t own = matters(nodes[n], facts[n]) ? 1 : 0;
    reserves[n] = own + (has_parent ? reserves[parent] : 0);
    all_reserves += own;
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) facts[n].beside_reserve = reserves[n] < all_reserves;
  return facts;
}

InForce first_reason(const NodeFacts& facts, const Resident& client, const DeviceConditions& where) {
  if (where.storms) return InForce::storm;
  if (facts.has_quota) return InForce::quota;
  if (facts.limited) return InForce::max;
  if (facts.beside_reserve && !where.time_sliced) return InForce::reserve;
  if (client.takes_turns) return InForce::jobs;  // before weights, which are for the policy then
  if (facts.uneven && !where.time_sliced) return InForce::weights;
  if (client.reports_jobs) return InForce::jobs;
  return where.options->always_preemptible ? InForce::always : InForce::nothing;
}

}  // namespace

std::string_view name_of(InForce what) {
  return kNames[static_cast<std::size_t>(what)];
}

std::vector<InForce> what_is_in_force(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                      const DeviceConditions& where) {
  return reasons_in_force(nodes, clients, where).first;
}

Reasons reasons_in_force(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                         const DeviceConditions& where) {
  const std::vector<NodeFacts> facts = facts_of(nodes, clients, where.capacity);
  Reasons reasons;
  for (const Resident& client : clients) {
    NodeFacts without = facts[client.node];
    const InForce first = first_reason(without, client, where);
    without.beside_reserve = without.limited = false;
    reasons.first.push_back(first);
    reasons.bounds_alone.push_back((first == InForce::reserve || first == InForce::max) && !without.has_reserve &&
                                   !client.capped && first_reason(without, client, where) == InForce::nothing);
  }
  return reasons;
}

}  // namespace gpuctl::daemon
