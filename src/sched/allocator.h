// Divides one device among all clients: one pass over the whole slice tree, so that what is taken from one client and
// what is given to another are one decision. Pure: no clock, no I/O; the same input gives the same output.
//
// Two kinds of capacity reach a client:
//   busy     its part of what its slice was given against its demand;
//   headroom what it may start with, or grow into, without asking first: what nobody demands. It is divided among those
//   who
//            have demand, whose blocks then need not share SMs, and while nobody has, among those who had it last: who
//            goes on where he was needs no decision at all. It counts for nothing as soon as somebody demands it. All
//            of this is disjoint: in sum never more than the device has. Who is to start at once beside others has a
//            reserve that is kept.
// One exception, wanted: a reserve that is kept and that its slice is not using is headroom for *every* client of that
// slice, because each of them was promised a start without waiting. Two that start in the same instant hold up to twice
// the reserve until the next decision, at nobody's cost but their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/capsm.h"
#include "sched/policy.h"
#include "sched/water_fill.h"

namespace gpuctl::sched {

/// A node of the tree; a parent stands before its children, the root is first.
struct NodeInput {
  std::int32_t parent = -1;  ///< index of the parent, -1 for the root
  CapSM reserve{};           ///< the children's sum to no more than the parent's; the root's is the device
  bool strict = true;        ///< the reserve is kept free, whatever its slice does
  /// Not strict: since the slice's last work the reserve is kept free for so long; 0: never.
  std::chrono::nanoseconds hold{};
  bool active = false;  ///< it is, by activity.h
  CapSM max = kUnlimitedCapSM;
  std::uint32_t weight = 1;
  std::int32_t priority = 0;          ///< within what slices above it allow, but for the root
  const Policy* policy = nullptr;     ///< not null
  std::uint64_t active_until_ns = 0;  ///< of activity.h

  /// Whether the reserve is kept free now while nobody demands it.
  bool keeps_reserve() const { return strict || active; }
};

struct ClientInput {
  std::uint32_t node =
      0;           ///< any node: beside children, an inner node's own clients count as one child of default weight
  CapSM demand{};  ///< what its outstanding launches could fill; 0 = idle
  CapSM most =
      kUnlimitedCapSM;  ///< what a policy for jobs lets it have, idle or not; then `demand` is no more than that
  /// When somebody last had demand it was this client, perhaps among others; matters while nobody has.
  bool latest = false;
};

struct NodeDecision {
  CapSM demand{};    ///< what its clients could fill, all together, within its max
  CapSM given{};     ///< of the parent's capacity: to use, or to keep free for it
  CapSM headroom{};  ///< of what nobody demands, beyond `given`
};

struct ClientDecision {
  CapSM grant{};  ///< what the client may use now: its own part plus the kept reserve its slice is not using
  CapSM own{};    ///< the part nobody else has too
};

struct Decision {
  std::vector<NodeDecision> nodes;      ///< as NodeInput
  std::vector<ClientDecision> clients;  ///< as ClientInput
};

/// Keeps scratch space between decisions: once it has seen the largest tree it allocates nothing. Not thread-safe.
class Allocator {
 public:
  /// `capacity`: the device's SMs. `turn`: who comes first where there is not enough for everybody (WaterFiller).
  void decide(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
              std::uint64_t turn, Decision& decision);

 private:
  struct Node {
    std::int32_t first_child = -1, next_sibling = -1;
    std::uint32_t first_client = 0, clients = 0;  ///< in demands_
    CapSM own_want{};                             ///< demand of the clients directly in the node
    CapSM want{}, floor{};
    bool inhabited = false;   ///< it or a node below it has a client that may have something
    bool open = false;        ///< one of these is directly in it
    bool latest = false;      ///< it or a node below it has one of the latest
    bool own_latest = false;  ///< directly
  };

  void link(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity);
  void gather_clients(std::span<const ClientInput> clients, CapSM capacity);
  void gather(std::span<const NodeInput> nodes, CapSM capacity, Decision& decision);
  void divide(std::size_t index, std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
              std::uint64_t turn, Decision& decision);
  void divide_among_clients(std::size_t index, std::span<const ClientInput> clients, CapSM capacity, CapSM headroom,
                            bool leaf, std::uint64_t turn, Decision& decision);

  std::vector<Node> nodes_;
  bool any_demand_ = false;
  bool scattered_ = false;                ///< the clients of some node do not stand side by side in the input
  std::vector<Vessel> demands_;           ///< of the clients, node by node, bounded by the device; of weight 1
  std::vector<std::uint32_t> residents_;  ///< indices of these, when scattered
  std::vector<CapSM> parts_;              ///< of the clients of one node
  std::vector<Claim> claims_;
  std::vector<CapSM> given_;
  WaterFiller filler_;
};

}  // namespace gpuctl::sched
