// Divides one device among all clients at once, over the whole slice tree, so that taking SMs from one client and
// giving them to another is one decision. Pure: no clock, no I/O; the same input gives the same output.
//
// Who may have SMs now: a client with demand that is *due* some. From the root down each node's policy says what part
// of the node's SMs each claimant is due, in parts of an SM. Who is due nothing gets nothing in any turn: its slice is
// suspended (max 0), or reserves take all. While somebody is due more than nothing and less than one SM, the device
// takes turns (turns.h). Starvation, turns and places go by this, and by nothing else.
//
// A client gets capacity of two kinds:
// - busy: its part of what its slice was given, up to its demand.
// - headroom: SMs that no client demands. The client may start with them, or grow into them, without asking first.
//
// Headroom goes to the clients with demand, so that their blocks need not share SMs. While no client has demand, it
// goes to the clients that had it last: a client that continues where it was needs no new decision. Headroom is
// withdrawn as soon as a client demands it. All these parts are disjoint: their sum never exceeds the device. A client
// that must start at once beside others needs a reserve that is kept free.
//
// One exception is intended: a reserve that is kept free and not in use is headroom for *every* client of its slice,
// because each of them was promised a start without waiting. Two of them that start in the same instant hold up to
// twice the reserve until the next decision. They alone bear the cost.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/capsm.h"
#include "sched/policy.h"
#include "sched/shares/turns.h"
#include "sched/shares/water_fill.h"

namespace gpuctl::sched {

/// A node of the tree. A parent precedes its children; the root is first.
struct NodeInput {
  std::int32_t parent = -1;  ///< index of the parent, -1 for the root
  CapSM reserve{};           ///< the children's add up to at most the parent's; the root's is the device
  bool strict = true;        ///< the reserve is kept free whatever its slice does
  /// If not strict: how long the reserve is kept free after the slice's last work; 0: not at all.
  std::chrono::nanoseconds hold{};
  bool kept_with_parent = false;  ///< then the slice is active when the one above it is
  bool active = false;            ///< the slice is active (activity.h)
  CapSM max = kUnlimitedCapSM;
  bool has_quota = false;  ///< from time to time it may have nothing (bandwidth.h)
  std::uint32_t weight = 1;
  std::int32_t priority = 0;          ///< no more than the parent's, unless the parent is the root
  const Policy* policy = nullptr;     ///< not null
  std::uint64_t active_until_ns = 0;  ///< set by mark_active (activity.h)
  TurnAccount account;                ///< as one of what is directly below its parent
  TurnAccount own_account;            ///< of the clients directly in it, as one of what is below it

  /// Whether the reserve is kept free now even if no client demands it.
  bool keeps_reserve() const { return strict || active; }
  /// Whether it is kept free at some times. Who counts `strict` reserves alone takes the holds away.
  bool may_keep_reserve() const { return strict || hold.count() > 0; }
};

/// Calls `visit` with the index of the node and of all above it, the root included.
template <class Visit>
void each_up_to_root(std::span<const NodeInput> nodes, std::size_t node, Visit visit) {
  visit(node);
  for (std::int32_t up = nodes[node].parent; up >= 0; up = nodes[static_cast<std::size_t>(up)].parent)
    visit(static_cast<std::size_t>(up));
}

/// Whether the node, or one above it, has a reserve. The root's is the device, and no reserve.
inline bool has_reserve(std::span<const NodeInput> nodes, std::size_t node) {
  bool found = false;
  each_up_to_root(nodes, node, [&](std::size_t n) { found |= n > 0 && nodes[n].reserve > CapSM{}; });
  return found;
}

struct ClientInput {
  /// Any node. Clients of an inner node count together as one more child, of default weight.
  std::uint32_t node = 0;
  CapSM demand{};  ///< what its outstanding launches could fill; 0 = idle
  /// What a policy for jobs lets it have, idle or not. `demand` counts up to this.
  CapSM most = kUnlimitedCapSM;
  /// The client, perhaps with others, was the last to have demand. Matters only while no client has demand.
  bool latest = false;
  Due credit = 0;  ///< TurnAccount::credit
};

struct NodeDecision {
  CapSM demand{};     ///< what its clients could fill together, within its max
  CapSM given{};      ///< its part of the parent's capacity, to use or to keep free
  CapSM headroom{};   ///< SMs beyond `given` that no client demands
  CapSM own_given{};  ///< of an inner node: the part of `given` that is for the clients directly in it
  Due due = 0;        ///< what `given` is over the turns
  Due own_due = 0;    ///< what `own_given` is over the turns
};

struct ClientDecision {
  CapSM grant{};  ///< what the client may use now: `own` plus the kept reserve that its slice is not using
  CapSM own{};    ///< the part that no other client has
  Due due = 0;    ///< of its demand, over the turns

  /// It may have SMs, and has to wait for them in some turns.
  bool waits_for_turns() const { return due > 0 && due < kWholeSm; }
  /// The part of its demand that it has now.
  CapSM given() const { return std::min(own, CapSM{static_cast<std::uint32_t>((due + kWholeSm - 1) / kWholeSm)}); }
};

struct Decision {
  std::vector<NodeDecision> nodes;      ///< in the order of the NodeInputs
  std::vector<ClientDecision> clients;  ///< in the order of the ClientInputs
  bool takes_turns = false;             ///< a client waits for turns
};

/// Charges the nodes' accounts for what `decision` gave them for `elapsed`, or ends their turn (shares/turns.h).
void charge(std::span<NodeInput> nodes, const Decision& decision, std::chrono::nanoseconds elapsed,
            std::chrono::nanoseconds turn);
void end_turn(std::span<NodeInput> nodes);

/// Keeps scratch space between decisions, so that it allocates nothing once it has seen the largest tree. Not
/// thread-safe.
class Allocator {
 public:
  /// `capacity`: the device's SMs.
  void decide(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
              Decision& decision);

 private:
  struct Node {
    std::int32_t first_child = -1, next_sibling = -1;
    std::uint32_t first_client = 0, clients = 0;  ///< a range in demands_
    CapSM own_want{};                             ///< demand of the clients directly in the node
    CapSM want{}, floor{};
    bool peopled = false;     ///< it or a node below it has a client
    bool inhabited = false;   ///< it or a node below it has a client that may have SMs
    bool open = false;        ///< such a client is directly in it
    bool latest = false;      ///< it or a node below it has a client with ClientInput::latest
    bool own_latest = false;  ///< such a client is directly in it
  };

  void link(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity);
  void gather_clients(std::span<const ClientInput> clients, CapSM capacity);
  void gather(std::span<const NodeInput> nodes, CapSM capacity, Decision& decision);
  void find_dues(std::size_t index, std::span<const NodeInput> nodes, Decision& decision);
  void divide(std::size_t index, std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
              Decision& decision);
  void divide_among_clients(std::size_t index, std::span<const ClientInput> clients, CapSM capacity, CapSM headroom,
                            bool leaf, Decision& decision);
  std::span<const Due> credits_if(bool takes_turns) const;
  template <class Visit>
  void each_child(std::size_t index, Visit visit) const;
  template <class Visit>
  void each_client(std::size_t index, Visit visit) const;

  std::vector<Node> nodes_;
  bool any_demand_ = false;
  bool scattered_ = false;                ///< the clients of some node are not adjacent in the input
  std::vector<Claimant> demands_;         ///< demands of the clients, node by node, at most the device; weight 1
  std::vector<std::uint32_t> residents_;  ///< if scattered: the index in the input of each client in demands_
  std::vector<CapSM> parts_;              ///< parts of the clients of one node
  std::vector<Claim> claims_;             ///< of one node, as are the next four
  std::vector<Claimant> wants_;
  std::vector<Due> dues_, credits_;
  std::vector<CapSM> given_;
  WaterFiller filler_;
};

}  // namespace gpuctl::sched
