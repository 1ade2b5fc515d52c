// One device of the scheduler: the clients on it, what was decided for each, and what their pages say. It gathers the
// inputs of a decision (device_decision.h) from the clients, and it alone writes their pages: what was decided, as far
// as no other client may be using it (handover.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "gpuctld/clients/client.h"
#include "gpuctld/grants/device_decision.h"
#include "gpuctld/grants/handover.h"
#include "sched/allocator.h"
#include "sched/effective/kept_by_mps.h"

namespace gpuctl::daemon {

/// While a client waits for its turn (sched/shares/turns.h), turns end so long after the handovers with which they
/// began: long against an eviction, short for a person.
inline constexpr std::chrono::milliseconds kTurn{20};

class DeviceGrants {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
    Terms terms;  ///< what follows from the tree alone; the rest of it is filled in here
  };

  /// A device of `sms` SMs. SMs beyond kMaxSms are never granted, because workers do not count so far.
  explicit DeviceGrants(std::uint32_t sms);

  /// Clients came or went, or the tree or what holds on the device changed: the next decision is about these. The
  /// device's size and whether it has storms stay as they are.
  void renew(std::vector<Member> members, const DeviceConditions& where);

  bool time_sliced() const { return where_.time_sliced; }
  std::span<const Member> members() const { return members_; }
  /// By member: whether anything other than a policy for jobs would be in force.
  std::vector<bool> in_force_without_jobs(std::span<const sched::NodeInput> all_nodes);
  /// What would be in force, other than a policy for jobs, for a client that comes to this node. `cap`: to how many SMs
  /// MPS keeps it. `where`: what holds then; the device's size and whether it has storms are as they are.
  InForce would_be_in_force(std::span<const sched::NodeInput> all_nodes, sched::CappedClient comes,
                            DeviceConditions where) const;

  /// What a slice would have if no policy for jobs kept back any of those below one: what such a policy divides. By
  /// node, valid until the next call.
  std::span<const sched::NodeDecision> parts_without_jobs(sched::Allocator& allocator,
                                                          std::span<const sched::NodeInput> all_nodes);

  /// Decides how many SMs each client is to have. Writes no page.
  void decide(sched::Allocator& allocator, std::span<const sched::NodeInput> all_nodes);

  /// Charges the accounts of all for the time since the last call. Before the next decision, and before nodes or
  /// clients come or go: at the instant of the last call it touches nobody.
  void charge(std::span<sched::NodeInput> all_nodes, std::uint64_t now_ns);
  /// Ends the turn if it has lasted long enough. True: decide anew. Slow clients cannot put that off beyond `deadline`.
  bool end_turn(std::span<sched::NodeInput> all_nodes, std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// Finds what is to be written of what was decided: as much as no other client may be using. `deadline`: see
  /// Client::overdue. Writes no page. True if a client may then use more than is recorded of it: Slot::to_record says
  /// what must be recorded before write(), or keep_to_record() be called.
  bool plan(std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  /// Nothing could be recorded: nobody gets more than is. But clients for which nothing is in force go on, as nobody
  /// relies on what they leave.
  void keep_to_record();
  /// Writes what plan() or plan_storm() found.
  void write(std::uint64_t now_ns);

  /// For tests of programs, in place of plan(): each client gets a random part of what was decided, until the next
  /// decision. No client waits for another.
  bool plan_storm(Random& random, std::uint64_t now_ns);

  /// Sets Slot::to_record to what each client may be using now.
  void record();

  /// The latest write() withheld SMs from a client.
  bool waiting() const { return waiting_; }
  const sched::Decision& division() const { return decision_.division; }
  std::uint32_t sms() const { return where_.capacity.count; }

 private:
  /// What MPS itself keeps, and the tree without it.
  struct LessKept {
    sched::KeptByMps kept;
    std::vector<sched::NodeInput> nodes;
  };

  Client::Slot& slot(const Member& member) const { return member.client->slots()[member.slot]; }
  std::vector<sched::CappedClient> capped() const;
  std::span<const sched::NodeInput> less_kept(std::span<const sched::NodeInput> nodes);
  void find_standings(std::span<const sched::NodeInput> nodes);
  ClientState state_of(const Member& member) const;
  void gather_states(std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  bool place_and_record();
  void write_grants(std::uint64_t now_ns);

  DeviceConditions where_;
  std::vector<Member> members_;
  std::vector<Standing> standings_;  ///< by member, as are the next four
  std::vector<Settled> settled_;     ///< settled_grants()
  std::vector<ClientState> clients_;
  std::vector<GrantState> states_;
  std::vector<NextGrant> next_;
  DeviceDecision decision_, without_jobs_;
  Handover handover_;
  LessKept less_kept_;
  bool waiting_ = false;
  bool renewed_ = true;  ///< standings_ and what is kept must be found anew
  std::uint64_t turn_ns_ = 0, turn_began_ns_ = 0, charged_ns_ = 0;
};

}  // namespace gpuctl::daemon
