#include "sched/latency/control.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gpuctl::sched {

namespace {

/// The indices of `slices`, the strictest first.
std::vector<std::size_t> by_strictness(std::span<const WithTarget> slices) {
  std::vector<std::size_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return slices[a].stricter_than(slices[b]); });
  return order;
}

CapSM less(CapSM a, CapSM b) {
  return a > b ? a - b : CapSM{};
}

/// What the slice above `node` has left beside the reserves below it.
CapSM left_beside(std::span<const NodeInput> nodes, std::size_t node) {
  const auto above = static_cast<std::size_t>(nodes[node].parent);
  CapSM left = std::min(nodes[above].reserve, nodes[above].max);
  for (std::size_t n = 1; n < nodes.size(); ++n)
    if (nodes[n].parent == nodes[node].parent) left = less(left, nodes[n].reserve);
  return left;
}

void add_kept(std::span<NodeInput> nodes, const WithTarget& slice, CapSM most) {
  NodeInput& node = nodes[slice.node];
  const CapSM kept{kept_at(slice.rung(Dial::kept), nodes[0].reserve.count)};
  const CapSM more = std::min({kept, most, less(node.max, node.reserve)});
  if (more == CapSM{}) return;
  node.reserve += more;
  const NodeInput& above = nodes[static_cast<std::size_t>(node.parent)];
  node.strict |= node.parent == 0 || above.strict;
}

/// What of `left` its peers have in any case is no part of it.
CapSM most_of_left(CapSM left, CapSM above) {
  return less(left, CapSM{(above.count + 3) / 4});
}

/// Whether `node` is directly in the slice above, or is in a peer's subtree, whose target `may` says.
template <class May>
bool is_peer(std::span<const NodeInput> nodes, std::size_t node, const WithTarget& to,
             std::span<const WithTarget> slices, May may) {
  const std::int32_t above = nodes[to.node].parent;
  if (std::cmp_equal(node, above)) return true;
  std::size_t peer = node;
  while (nodes[peer].parent >= 0 && nodes[peer].parent != above) peer = static_cast<std::size_t>(nodes[peer].parent);
  if (nodes[peer].parent != above || peer == to.node) return false;
  const auto its = std::ranges::find_if(slices, [peer](const WithTarget& slice) { return slice.node == peer; });
  return may(its == slices.end() ? nullptr : &*its);
}

}  // namespace

void keep_for(std::span<NodeInput> nodes, std::span<const WithTarget> slices) {
  for (const std::size_t i : by_strictness(slices)) add_kept(nodes, slices[i], left_beside(nodes, slices[i].node));
}

std::vector<CapSM> most_kept(std::span<const NodeInput> all_nodes, std::span<const WithTarget> slices) {
  std::vector<NodeInput> nodes(all_nodes.begin(), all_nodes.end());
  std::vector<CapSM> most(slices.size());
  for (const std::size_t i : by_strictness(slices)) {
    const NodeInput& node = nodes[slices[i].node];
    const CapSM above = nodes[static_cast<std::size_t>(node.parent)].reserve;
    most[i] = std::min(most_of_left(left_beside(nodes, slices[i].node), above), less(node.max, node.reserve));
    add_kept(nodes, slices[i], most[i]);
  }
  return most;
}

bool yields(std::span<const NodeInput> nodes, std::size_t node, const WithTarget& to,
            std::span<const WithTarget> slices) {
  return is_peer(nodes, node, to, slices,
                 [&](const WithTarget* its) { return its == nullptr || to.stricter_than(*its); });
}

bool can_be_paused(std::span<const NodeInput> nodes, std::size_t node, const WithTarget& to,
                   std::span<const WithTarget> slices) {
  return is_peer(nodes, node, to, slices, [&](const WithTarget* its) {
    return its == nullptr || to.stricter_than(*its) || (its->at_most.count() == 0 && to.at_most.count() == 0);
  });
}

std::vector<std::int32_t> raise_levels(std::span<NodeInput> nodes, std::span<const WithTarget> slices) {
  std::vector<std::int32_t> raised(nodes.size(), 0);
  const std::vector<std::size_t> order = by_strictness(slices);
  for (auto i = order.rbegin(); i != order.rend(); ++i) {  // the strictest comes last, above the others
    const WithTarget& slice = slices[*i];
    NodeInput& node = nodes[slice.node];
    if (slice.rung(Dial::level) == 0) continue;
    std::int32_t most = nodes[static_cast<std::size_t>(node.parent)].priority;
    for (std::size_t n = 1; n < nodes.size(); ++n)
      if (n != slice.node && nodes[n].parent == node.parent && yields(nodes, n, slice, slices))
        most = std::max(most, nodes[n].priority);
    const std::int32_t before = node.priority, now = std::max(node.priority, most + 1);
    // Nor do those fall behind that do not yield.
    for (std::size_t n = 1; n < nodes.size(); ++n) {
      if (nodes[n].parent != node.parent || nodes[n].priority < before || nodes[n].priority >= now) continue;
      if (n != slice.node && yields(nodes, n, slice, slices)) continue;
      raised[n] += now - nodes[n].priority;
      nodes[n].priority = now;
    }
  }
  return raised;
}

std::vector<std::optional<std::chrono::microseconds>> longest_turns(std::span<const NodeInput> nodes,
                                                                    std::span<const WithTarget> slices) {
  std::vector<std::optional<std::chrono::microseconds>> longest(nodes.size());
  for (const WithTarget& slice : slices) {
    if (slice.rung(Dial::turns) == 0) continue;
    const std::chrono::microseconds turn = turn_at(slice.rung(Dial::turns));
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (yields(nodes, n, slice, slices)) longest[n] = std::min(longest[n].value_or(turn), turn);
  }
  return longest;
}

void LatencyControl::renew(std::span<const Target> targets,
                           const std::function<bool(const std::string& path)>& exists) {
  for (Entry& entry : std::exchange(entries_, {})) {
    const auto wanted = std::ranges::find(targets, entry.path, &Target::path);
    if (wanted == targets.end() || wanted->target != entry.steer.target())
      alone_.insert_or_assign(entry.path, entry.steer.alone());
    else
      entries_.push_back(std::move(entry));
  }
  std::vector<Entry> before = std::exchange(entries_, {});
  for (const Target& target : targets) {
    const auto was = std::ranges::find(before, target.path, &Entry::path);
    if (was != before.end()) {
      entries_.push_back({target.path, target.node, std::move(was->steer)});
    } else {
      entries_.push_back({target.path, target.node, Steer(target.target, alone_[target.path])});
    }
    alone_.erase(target.path);
  }
  std::erase_if(alone_, [&](const auto& known) { return !exists(known.first); });
}

void LatencyControl::begin_anew(std::string_view path, std::chrono::nanoseconds now) {
  const auto found = std::ranges::find(entries_, path, &Entry::path);
  if (found != entries_.end()) found->steer.begin_anew(now);
}

void LatencyControl::saw_alone(const std::string& path, const LatencyHistogram& bursts, std::chrono::nanoseconds now) {
  if (find(path) == nullptr) alone_[path].add(bursts, now);
}

bool LatencyControl::step(std::span<const NodeInput> nodes, std::span<LatencyStep> steps) {
  const std::vector<WithTarget> slices = this->slices();
  const std::vector<CapSM> most = most_kept(nodes, slices);
  const bool pauses = this->pauses().has_value();
  bool turned = false, moving = false;
  for (const std::size_t i : by_strictness(slices)) {
    int& kept = steps[i].last[static_cast<std::size_t>(Dial::kept)];
    if (kept != 0) kept = kept_rungs(most[i].count, nodes[0].reserve.count);
    // One dial at a time, so that it is seen what comes of it.
    steps[i].may_turn = !moving && pauses == entries_[i].steer.pauses();
    const bool now = entries_[i].steer.step(steps[i]);
    turned |= now;
    moving |= entries_[i].steer.moving();
    if (!now && !entries_[i].steer.pauses()) continue;
    for (std::size_t other = 0; other < entries_.size(); ++other)
      if (other != i) entries_[other].steer.disturbed(steps[i].now);
  }
  return turned;
}

std::vector<WithTarget> LatencyControl::slices() const {
  std::vector<WithTarget> slices;
  for (const Entry& entry : entries_) slices.push_back({entry.node, entry.steer.rungs(), entry.steer.at_most()});
  return slices;
}

std::optional<WithTarget> LatencyControl::pauses() const {
  const auto found = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.steer.pauses(); });
  if (found == entries_.end()) return std::nullopt;
  return WithTarget{found->node, found->steer.rungs(), found->steer.at_most()};
}

const Steer* LatencyControl::find(std::string_view path) const {
  const auto found = std::ranges::find(entries_, path, &Entry::path);
  return found == entries_.end() ? nullptr : &found->steer;
}

const Alone* LatencyControl::alone(const std::string& path) const {
  if (const Steer* steer = find(path)) return &steer->alone();
  const auto known = alone_.find(path);
  return known == alone_.end() ? nullptr : &known->second;
}

}  // namespace gpuctl::sched
