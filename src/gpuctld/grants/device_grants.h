// One device of the scheduler: the clients on it, how many SMs were decided for each, and how many the clients' pages
// say.
//
// A grant is a number of SMs, no particular ones, so it is a sum that must hold: all clients together may use no more
// than the device has. A busy client whose grant shrank may go on using what it had until it says that it has left, or
// until its deadline has passed. Meanwhile as many SMs are withheld from the clients that gain. So a decision takes
// hold in two phases. Each write() brings the written grants closer to it: clients that gain keep what they have and
// get what no other client may be using, clients of slices with a reserve first. A client with nothing outstanding uses
// nothing, so no client waits for it; what it may start with counts all the same.
//
// What the clients of a leaf share at rest (sched/allocator.h) counts once, even if its slice has no client: a reserve
// that is kept stays free during handovers. If several of its clients start in the same instant, other clients wait
// until these have divided it.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "gpuctld/clients/client.h"
#include "gpuctld/clients/in_force.h"
#include "sched/allocator.h"

namespace gpuctl::daemon {

class DeviceGrants {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
  };

  /// A device of `sms` SMs. SMs beyond kMaxSms are never granted, because workers do not count so far.
  explicit DeviceGrants(std::uint32_t sms);

  /// Clients came or went, or the tree changed.
  void renew(std::vector<Member> members);

  /// Whether the device is time-sliced among its clients (no MPS): they never run at the same time. Then no client
  /// takes SMs from another: in its turns each has the most that its slice may have.
  void set_time_sliced(bool on) {
    look_again_ |= time_sliced_ != on;
    time_sliced_ = on;
  }
  /// Whether all clients must be ready to give SMs back, whatever is in force.
  void set_always_preemptible(bool on) {
    look_again_ |= always_ != on;
    always_ = on;
  }
  bool time_sliced() const { return time_sliced_; }

  std::span<const Member> members() const { return members_; }
  /// By member: whether anything other than a policy for jobs would be in force.
  std::vector<bool> obeys_without_jobs(std::span<const sched::NodeInput> nodes) const;

  /// Decides how many SMs each client is to have. Writes no grants, but the other words of the pages: the reserve, what
  /// is in force, whether the client is alone.
  void decide(sched::Allocator& allocator, std::span<const sched::NodeInput> nodes, std::uint64_t turn);

  /// Writes what was decided, as far as no other client may be using it. `deadline`: see Client::overdue.
  void write(std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// For tests of programs: grants each client a random part of what was decided, until the next decision. No client
  /// waits for another.
  void storm(Random& random, std::uint64_t now_ns);

  /// The latest write() withheld SMs from a client.
  bool waiting() const { return waiting_; }
  /// A client with demand has no SMs.
  bool starving() const { return starving_; }
  const sched::Decision& decision() const { return decision_; }
  std::uint32_t sms() const { return capacity_.count; }

 private:
  struct Node {
    bool reserved = false;
    bool inhabited = false;     ///< clients are directly in it
    std::uint32_t at_rest = 0;  ///< of a leaf: granted to each of its clients beside the client's own part
    std::uint32_t there = 0;    ///< the part of `at_rest` that no other client may be using
  };

  Client::Slot& slot(const Member& member) const { return member.client->slots()[member.slot]; }
  void decide_time_sliced(std::span<const sched::NodeInput> nodes);
  void count_rest(std::span<const sched::NodeInput> nodes);
  /// Whether what is in force must be found again.
  bool residents_changed();
  Circumstances circumstances() const;
  /// Finds what is in force for each member and how many SMs are guaranteed to it, and writes both to its page.
  void look_what_is_in_force(std::span<const sched::NodeInput> nodes);
  /// The client may use the whole device beside all others. What is decided for it is what others keep clear of.
  bool is_free(std::size_t member) const { return !storms_ && in_force_[member] == InForce::nothing; }
  /// Whether others may use the slice's reserve until the slice has work.
  static bool may_be_lent(std::span<const sched::NodeInput> nodes, std::size_t index);
  /// The part of its demand that is set aside for the client. If nothing is in force for it, that is its slice's
  /// reserve alone: beyond it the GPU decides whose blocks get in, whatever is granted to others.
  std::uint32_t demand_that_counts(std::span<const sched::NodeInput> nodes, std::size_t member) const;
  /// Grant::reserve: SMs that no client outside of the slice can have. 0 if the slice or one above it is limited,
  /// because launches that rely on their reserve are not limited. In turns an unlimited slice has the whole device.
  std::uint32_t own_reserve(std::span<const sched::NodeInput> nodes, std::size_t index) const;
  void hand_over(std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  void place();
  void write_next(std::uint64_t now_ns);

  sched::CapSM capacity_;
  std::vector<Member> members_;
  std::vector<Resident> residents_;  ///< what in_force_ was decided for
  std::vector<InForce> in_force_;    ///< by member, as are the next three
  std::vector<sched::ClientInput> inputs_;
  std::vector<std::uint32_t> next_;  ///< what is about to be written
  std::vector<std::uint32_t> most_;  ///< what the client may be using
  std::vector<Node> nodes_;          ///< by node
  sched::Decision decision_;
  bool time_sliced_ = false, always_ = false, waiting_ = false, starving_ = false;
  bool look_again_ = true;  ///< what is in force may have changed
  bool storms_ = false;     ///< there was a storm: no client is told that it is alone
};

}  // namespace gpuctl::daemon
