// What is decided for the clients of one device. Pure: inputs in, a decision out. No page is read or written, there is
// no clock, and the same inputs give the same decision. DeviceGrants gathers the inputs and is the one writer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpuctld/clients/in_force.h"
#include "ipc/stub.h"
#include "sched/allocator.h"

namespace gpuctl::daemon {

/// What the tree and the presence of other clients mean for a client, whatever their demands are.
struct Standing {
  InForce in_force = InForce::nothing;
  std::uint32_t guaranteed = 0;  ///< Stub::guaranteed_sms
  bool reports_jobs = false;     ///< Resident::reports_jobs
  /// It wakes the daemon when work begins, as SMs of its slice may be lent, or its use of a quota is counted.
  bool reports_work = false;
  bool bounds_alone = false;     ///< Reasons::bounds_alone
  bool suspended = false;        ///< its slice, or one above it, may have nothing
  std::uint32_t part_first = 0;  ///< where a part begins that it has in common with others (parts.h)
};

/// One entry for each of `clients`.
std::vector<Standing> standings_of(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                   const DeviceConditions& where);

/// What of a client's grant stays the same, as far as it has demand, whatever the demands of others are. So nothing of
/// that which it uses is ever taken away.
struct Settled {
  bool grant = false;             ///< all of it
  bool but_for_reserves = false;  ///< all that the strict and active reserves of others leave while they are kept
};
/// A client when a decision is made.
struct ClientState {
  std::uint32_t node = 0;                    ///< its slice
  std::uint32_t demand = 0;                  ///< CapSM, as far as its policy for jobs admits it
  std::uint32_t admitted = ipc::kUnlimited;  ///< the most CapSM that its policy for jobs lets it have
  bool under_policy = false;                 ///< it takes turns under a policy for jobs
  bool latest = false;                       ///< it had demand when any client of the device last had
  Settled settled;
  sched::Due credit = 0;  ///< sched::TurnAccount::credit
};

struct DeviceInputs {
  std::span<const sched::NodeInput> nodes;
  std::span<const ClientState> clients;
  std::span<const Standing> standings;  ///< by client
  DeviceConditions where;
};

/// What is decided for a client.
struct ClientOutcome {
  std::uint32_t capsm = 0;    ///< its grant
  std::uint32_t first = 0;    ///< the SM with which its grant begins, for kernels that are confined to certain SMs
  std::uint32_t reserve = 0;  ///< Grant::reserve
  bool alone = false;         ///< ipc::kAlone
  bool latest = false;        ///< ClientState::latest from now on
  /// How its kernels run. If it is free it may use the whole device beside all others, and its grant is what others
  /// keep clear of.
  ipc::Mode mode = ipc::Mode::workers;
  bool settled = false;  ///< ipc::kSettled: what it has now stays the same whatever others demand

  bool free() const { return mode == ipc::Mode::free; }
};

/// A node of the tree, for handovers.
struct NodeRest {
  bool reserved = false;      ///< it has a part in a reserve
  bool inhabited = false;     ///< clients are directly in it
  std::uint32_t at_rest = 0;  ///< of a leaf: granted to each of its clients beside the client's own part
};

struct DeviceDecision {
  sched::Decision division;               ///< how the device is divided over the tree
  std::vector<sched::ClientInput> asked;  ///< what was divided, by client
  std::vector<ClientOutcome> clients;
  std::vector<NodeRest> nodes;
  std::vector<sched::CapSM> reserves_left;      ///< scratch: by node, what no client's demand counted of its reserve
  std::vector<sched::NodeInput> divided_nodes;  ///< scratch
  struct Region {
    std::uint32_t reserved = 0, others = 0, own = 0;  ///< where the next of these begins
  };
  std::vector<Region> regions;  ///< scratch: by node
  bool keeps_reserve = false;   ///< SMs are kept for a reserve now
  bool starving = false;        ///< a client that may have SMs waits for its turn

  const NodeRest& node_of(std::size_t client) const { return nodes[asked[client].node]; }
};

/// By client. The demands of the inputs mean nothing. Among more clients than can use a GPU together (MPS has at most
/// 60) nothing is settled, as that is not worth finding out.
std::vector<Settled> settled_grants(const DeviceInputs& inputs, sched::Allocator& scratch);
inline constexpr std::size_t kMostToSettle = 64;

/// `scratch` is not part of the result. Overwrites `decision`, whose memory is used again.
void decide(const DeviceInputs& inputs, sched::Allocator& scratch, DeviceDecision& decision);

}  // namespace gpuctl::daemon
