#include "gpuctld/grants/device_decision.h"

#include <algorithm>

#include "gpuctld/grants/parts.h"
#include "sched/bounds.h"

namespace gpuctl::daemon {

namespace {

using ipc::Mode;
using sched::CapSM;

/// `a` less `b`, at least 0.
CapSM excess(CapSM a, CapSM b) {
  return a > b ? CapSM{a.count - b.count} : CapSM{};
}

/// Calls `visit` with the index of the node and of those above it, up to but without the root.
template <class Visit>
void each_below_root(std::span<const sched::NodeInput> nodes, std::size_t index, Visit visit) {
  sched::each_up_to_root(nodes, index, [&](std::size_t n) {
    if (nodes[n].parent >= 0) visit(n);
  });
}

/// Whether others may use the slice's reserve until the slice has work.
bool may_be_lent(std::span<const sched::NodeInput> nodes, std::size_t index) {
  bool lent = false;
  each_below_root(nodes, index, [&](std::size_t n) { lent |= nodes[n].reserve > CapSM{} && !nodes[n].strict; });
  return lent;
}

/// The part of a client's demand that is set aside for it. If nothing is in force for it, that is its slice's reserve
/// alone: beyond it the GPU decides whose blocks get in, whatever is granted to others. `left`, by node: what of each
/// reserve no client before this one counted.
CapSM demand_that_counts(const DeviceInputs& inputs, std::size_t index, bool all_free, bool free,
                         std::vector<CapSM>& left) {
  const ClientState& client = inputs.clients[index];
  // If no client has to give SMs back, the numbers only show what each wants.
  if (inputs.where.time_sliced || !free || all_free) return CapSM{client.demand};
  std::size_t with_reserve = client.node;
  each_below_root(inputs.nodes, client.node, [&](std::size_t n) {
    if (inputs.nodes[n].reserve >= inputs.nodes[with_reserve].reserve) with_reserve = n;
  });
  if (inputs.nodes[with_reserve].parent < 0) return {};
  const CapSM counts = std::min(CapSM{client.demand}, left[with_reserve]);
  left[with_reserve] = excess(left[with_reserve], counts);
  return counts;
}

/// The tree as it is divided. What no client demands must not go to a slice all of whose clients are free: they may use
/// the whole device anyway, and the grants of others would change each time these begin or end. So it has no more than
/// its reserve.
std::span<const sched::NodeInput> tree_to_divide(const DeviceInputs& inputs, bool all_free, DeviceDecision& decision) {
  const auto is_free = [](const ClientOutcome& outcome) { return outcome.free(); };
  if (inputs.where.time_sliced || all_free || std::ranges::none_of(decision.clients, is_free)) return inputs.nodes;
  std::vector<sched::NodeInput>& nodes = decision.divided_nodes;
  nodes.assign(inputs.nodes.begin(), inputs.nodes.end());
  for (sched::NodeInput& node : std::span(nodes).subspan(1)) node.max = std::min(node.max, node.reserve);
  for (std::size_t i = 0; i < inputs.clients.size(); ++i) {
    if (decision.clients[i].free()) continue;
    each_below_root(nodes, inputs.clients[i].node, [&](std::size_t n) { nodes[n].max = inputs.nodes[n].max; });
  }
  return nodes;
}

/// Grant::reserve: SMs that no client outside of the slice can have. 0 if the slice or one above it is limited, because
/// launches that rely on their reserve are not limited. Where the device is time-sliced an unlimited slice has all of
/// it. 0 with a quota too, which may be used up.
std::uint32_t own_reserve(const DeviceInputs& inputs, std::size_t index) {
  const auto [nodes, capacity] = std::pair(inputs.nodes, inputs.where.capacity);
  const bool limited = sched::most_of(nodes, index, capacity) < capacity;
  if (inputs.where.time_sliced) return limited ? 0 : capacity.count;
  if (limited || nodes[index].parent < 0) return 0;
  return nodes[index].keeps_reserve() ? std::min(nodes[index].reserve, capacity).count : 0;
}

/// On a time-sliced device no client takes SMs from another: in its turns each has the most that its slice may have.
void give_all(const DeviceInputs& inputs, DeviceDecision& decision) {
  for (std::size_t n = 0; n < inputs.nodes.size(); ++n) {
    decision.division.nodes[n].given = sched::most_of(inputs.nodes, n, inputs.where.capacity);
    decision.division.nodes[n].headroom = {};
  }
  for (std::size_t i = 0; i < decision.asked.size(); ++i) {
    const sched::ClientInput& asked = decision.asked[i];
    const CapSM all = std::min(sched::most_of(inputs.nodes, asked.node, inputs.where.capacity), asked.most);
    decision.division.clients[i] = {.grant = all, .own = all};
  }
}

/// Computes what each leaf has beyond its clients' own parts.
void count_rest(std::span<const sched::NodeInput> nodes, DeviceDecision& decision) {
  decision.nodes.assign(nodes.size(), {});
  for (std::size_t n = 0; n < nodes.size(); ++n) {  // parents first
    decision.nodes[n].at_rest = (decision.division.nodes[n].given + decision.division.nodes[n].headroom).count;
    if (nodes[n].parent < 0) continue;
    decision.nodes[n].reserved =
        nodes[n].reserve > CapSM{} || decision.nodes[static_cast<std::size_t>(nodes[n].parent)].reserved;
    decision.nodes[static_cast<std::size_t>(nodes[n].parent)].at_rest = 0;
  }
  for (std::size_t i = 0; i < decision.asked.size(); ++i) {
    NodeRest& node = decision.nodes[decision.asked[i].node];
    node.inhabited = true;
    node.at_rest -= std::min(node.at_rest, decision.division.clients[i].own.count);
  }
}

/// One place for each slice: within that of the slice above, what it was given and its headroom. Slices with a reserve
/// come first, so their place never depends on what others do, then the other slices, then the clients directly in the
/// slice. Of the SMs of a leaf its clients have their own parts one behind the other, and share what is behind these.
/// All this follows from what was decided; so nothing moves while grants stay.
void place(std::span<const sched::NodeInput> nodes, DeviceDecision& decision) {
  const auto size = [&](std::size_t n) {
    return (decision.division.nodes[n].given + decision.division.nodes[n].headroom).count;
  };
  std::vector<DeviceDecision::Region>& regions = decision.regions;
  regions.assign(nodes.size(), {});
  for (std::size_t n = 1; n < nodes.size(); ++n) {
    DeviceDecision::Region& above = regions[static_cast<std::size_t>(nodes[n].parent)];
    if (nodes[n].reserve > CapSM{}) above.others += size(n);
    above.own += size(n);
  }
  for (std::size_t n = 1; n < nodes.size(); ++n) {  // parents first
    DeviceDecision::Region& above = regions[static_cast<std::size_t>(nodes[n].parent)];
    std::uint32_t& next = nodes[n].reserve > CapSM{} ? above.reserved : above.others;
    regions[n].reserved += next, regions[n].others += next, regions[n].own += next;
    next += size(n);
  }
  for (std::size_t i = 0; i < decision.asked.size(); ++i) {
    std::uint32_t& next = regions[decision.asked[i].node].own;
    decision.clients[i].first = next;
    next += decision.division.clients[i].own.count;
  }
}

bool keeps_any_reserve(std::span<const sched::NodeInput> nodes) {
  return std::ranges::any_of(
      nodes.subspan(1), [](const sched::NodeInput& node) { return node.reserve > CapSM{} && node.keeps_reserve(); });
}

/// What all clients that are not free have in common now, for kernels in original form: the GPU divides it among them
/// by the blocks that they have, as it does where nothing is in force. Mode::workers: nothing, where one of them is not
/// like the others: its kernels may have to stop for theirs, or it may be on any SM. Those of suspended slices start
/// nothing and do not count.
Mode common_to_all(const DeviceInputs& inputs, const DeviceDecision& decision) {
  if (!inputs.where.options->reserve_by_parts || inputs.where.time_sliced) return Mode::workers;
  bool limited = false;
  for (std::size_t i = 0; i < inputs.clients.size(); ++i) {
    const Standing& standing = inputs.standings[i];
    if (decision.clients[i].free() || standing.suspended) continue;
    if (!standing.bounds_alone) return Mode::workers;
    limited |= standing.in_force == InForce::max;
  }
  bool lends = false;  // for a client that is there
  for (const ClientState& client : inputs.clients)
    each_below_root(inputs.nodes, client.node, [&](std::size_t n) {
      lends |= inputs.nodes[n].reserve > CapSM{} && !inputs.nodes[n].keeps_reserve();
    });
  if (!lends) return Mode::common;
  return limited || decision.keeps_reserve ? Mode::workers : Mode::lent;
}

/// Whether only maxima and reserves of others are in force for the client, and its grant is within what these leave
/// while they are kept, of which nobody can take anything away.
bool has_a_part(const DeviceInputs& inputs, std::size_t client, std::uint32_t capsm) {
  const DeviceConditions& where = inputs.where;
  const Standing& standing = inputs.standings[client];
  if (!where.options->reserve_by_parts || where.options->always_preemptible || where.storms) return false;
  if (standing.reports_jobs) return false;
  return (standing.in_force == InForce::reserve || standing.in_force == InForce::max) &&
         inputs.clients[client].settled.but_for_reserves && capsm <= standing.guaranteed;
}

/// How the kernels of a client run that is not free, which was given so much. `common`: common_to_all().
Mode mode_of(const DeviceInputs& inputs, std::size_t client, std::uint32_t capsm, Mode common) {
  if (inputs.where.time_sliced) return inputs.where.storms ? Mode::workers : Mode::turns;
  if (common != Mode::workers && !inputs.standings[client].suspended) return common;
  if (has_a_part(inputs, client, capsm)) return Mode::part;
  return Mode::workers;
}

}  // namespace

std::vector<Standing> standings_of(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                   const DeviceConditions& where) {
  const Reasons reasons = reasons_in_force(nodes, clients, where);
  const std::vector<CapSM> guaranteed = sched::guaranteed(nodes, where.capacity);
  const std::vector<std::uint32_t> parts = parts_of(nodes, guaranteed, where.capacity);
  std::vector<Standing> standings;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::size_t node = clients[i].node;
    // A program keeps the number that it is told first. So it is not told of a suspended slice (max 0), which does not
    // stay suspended.
    const CapSM most = sched::most_of(nodes, node, where.capacity);
    const CapSM told = where.time_sliced ? most : guaranteed[node];
    standings.push_back(
        {.in_force = reasons.first[i],
         .guaranteed = most.count == 0 || told == where.capacity ? 0 : told.count,
         .reports_jobs = clients[i].reports_jobs,
         .reports_work = reasons.first[i] == InForce::quota || (!where.time_sliced && may_be_lent(nodes, node)),
         .bounds_alone = reasons.bounds_alone[i],
         .suspended = most.count == 0,
         .part_first = parts[node]});
  }
  return standings;
}

void decide(const DeviceInputs& inputs, sched::Allocator& scratch, DeviceDecision& decision) {
  const std::size_t count = inputs.clients.size();
  const auto is_free = [&](const Standing& standing) {
    return !inputs.where.storms && standing.in_force == InForce::nothing;
  };
  const bool all_free = std::all_of(inputs.standings.begin(), inputs.standings.end(), is_free);
  const bool any_demand =
      std::any_of(inputs.clients.begin(), inputs.clients.end(), [](const ClientState& c) { return c.demand > 0; });
  decision.asked.resize(count);
  decision.clients.resize(count);
  decision.reserves_left.clear();
  for (const sched::NodeInput& node : inputs.nodes) decision.reserves_left.push_back(node.reserve);
  for (std::size_t i = 0; i < count; ++i) {
    const ClientState& client = inputs.clients[i];
    ClientOutcome& outcome = decision.clients[i];
    outcome.mode = is_free(inputs.standings[i]) ? Mode::free : Mode::workers;
    outcome.latest = any_demand ? client.demand > 0 : client.latest;
    decision.asked[i] = {client.node, demand_that_counts(inputs, i, all_free, outcome.free(), decision.reserves_left),
                         CapSM{client.admitted}, outcome.latest, client.credit};
  }
  const auto nodes = tree_to_divide(inputs, all_free, decision);
  scratch.decide(nodes, decision.asked, inputs.where.capacity, decision.division);
  if (inputs.where.time_sliced) give_all(inputs, decision);
  count_rest(inputs.nodes, decision);
  place(inputs.nodes, decision);
  decision.starving = false;
  decision.keeps_reserve = keeps_any_reserve(inputs.nodes);
  const Mode common = common_to_all(inputs, decision);
  for (std::size_t i = 0; i < count; ++i) {
    const ClientState& client = inputs.clients[i];
    ClientOutcome& outcome = decision.clients[i];
    outcome.capsm = decision.division.clients[i].grant.count;
    if (!outcome.free()) outcome.mode = mode_of(inputs, i, outcome.capsm, common);
    outcome.settled = client.settled.grant || ipc::is_confined(outcome.mode);
    const bool has_quota = inputs.standings[i].in_force == InForce::quota;
    outcome.reserve = client.under_policy || has_quota ? 0 : own_reserve(inputs, client.node);
    outcome.alone = !inputs.where.storms && count == 1 && !client.under_policy &&
                    sched::most_of(inputs.nodes, client.node, inputs.where.capacity) == inputs.where.capacity;
    decision.starving |= decision.division.clients[i].waits_for_turns() && !outcome.free();
  }
}

std::vector<Settled> settled_grants(const DeviceInputs& inputs, sched::Allocator& scratch) {
  const CapSM capacity = inputs.where.capacity;
  const std::size_t count = inputs.clients.size();
  std::vector<Settled> settled(count);
  const auto takes_turns = [&](std::size_t i) {
    return inputs.clients[i].under_policy || inputs.standings[i].reports_jobs ||
           inputs.standings[i].in_force == InForce::quota;
  };
  const auto is_free = [&](std::size_t i) { return inputs.standings[i].in_force == InForce::nothing; };
  if (inputs.where.storms || (count > kMostToSettle && !inputs.where.time_sliced)) return settled;
  // The most that each can have, and the least: reserves that may be kept are kept, and all others want everything.
  std::vector<sched::NodeInput> nodes(inputs.nodes.begin(), inputs.nodes.end());
  for (sched::NodeInput& node : nodes) {
    node.active = true;
    node.hold = {};
  }
  const std::vector<CapSM> most = sched::guaranteed(nodes, capacity), left = sched::guaranteed(inputs.nodes, capacity);
  std::vector<ClientState> clients;
  for (const ClientState& client : inputs.clients) clients.push_back({.node = client.node, .demand = capacity.count});
  DeviceDecision least;
  const auto grant_of = [&](std::size_t i) {
    decide({nodes, clients, inputs.standings, inputs.where}, scratch, least);
    return CapSM{least.clients[i].capsm};
  };
  const auto set_demands = [&](std::size_t i, std::uint32_t own, std::uint32_t of_free) {
    for (std::size_t other = 0; other < count; ++other)
      if (is_free(other)) clients[other].demand = of_free;
    clients[i].demand = own;
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (takes_turns(i)) continue;
    settled[i].grant = inputs.where.time_sliced || is_free(i);
    if (settled[i].grant) continue;
    set_demands(i, capacity.count, capacity.count);
    const CapSM grant = grant_of(i);
    const std::uint32_t node = inputs.clients[i].node;
    if (least.starving || (grant != most[node] && grant != left[node])) continue;
    // What it does not demand must not go to others either. (Those that are free need no grant.)
    set_demands(i, 1, 0);
    if (grant_of(i) == grant) settled[i] = {.grant = grant == most[node], .but_for_reserves = grant == left[node]};
    set_demands(i, capacity.count, capacity.count);
  }
  return settled;
}

}  // namespace gpuctl::daemon
