// Which SMs: turns the counts of a Decision into disjoint sets of SMs, and moves nobody whose count does not change.
//
// The parts that a device is divided into are each client's own SMs, and each leaf's SMs at rest: what a leaf holds
// beyond its clients' own parts, a reserve nobody uses, which all its clients are granted too. What a node holds is
// the union of its parts.
//
// A part that shrinks keeps a subset of itself, and one that grows keeps itself and takes from what others gave up,
// within its node first: so a node too shrinks to a subset and grows to a superset of what it held. Nodes with a
// reserve take the highest SMs and give up the lowest, all others the other way round: reserves stay together at the
// top, where what is lent is given up first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/sm_set.h"
#include "sched/allocator.h"

namespace gpuctl::sched {

/// One device: what stands now. Pure and deterministic; once it has seen the largest tree it allocates nothing. Not
/// thread-safe.
class Placement {
 public:
  /// A device of `sms` SMs, of which those beyond kMaxSms are never granted: no set can name them.
  explicit Placement(std::uint32_t sms) : device_(SmSet::first(sms)) {}

  /// What the decisions are to be made with: SMs that can be granted.
  CapSM capacity() const { return CapSM{device_.size()}; }
  const SmSet& device() const { return device_; }

  /// Before a place() in which nodes or clients are numbered anew: for each new index, the one it had, or -1. What
  /// nobody carries over is free.
  void carry_over(std::span<const std::int32_t> nodes, std::span<const std::int32_t> clients);

  /// Brings all sets to the sizes of `decision`, which was made from `nodes` and `clients` with capacity().
  void place(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, const Decision& decision);

  /// By index, as of the latest place(). A client is granted its own SMs and those its node keeps at rest.
  const SmSet& own(std::size_t client) const { return own_[client].sms; }
  const SmSet& at_rest(std::size_t node) const { return rest_[node].sms; }

 private:
  struct Part {
    SmSet sms;
    std::uint32_t count = 0;  ///< wanted
  };
  struct Node {
    bool leaf = true;
    bool reserved = false;
    SmSet freed;  ///< given up by its parts in this place(), and not taken again
  };

  void count(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, const Decision& decision);
  void shrink(Part& part, Node& node);
  void grow(Part& part, Node& node, const SmSet& source);

  SmSet device_, free_;
  std::vector<Node> nodes_;
  std::vector<Part> rest_, own_;  ///< by node, by client
  std::vector<Part> scratch_;
};

}  // namespace gpuctl::sched
