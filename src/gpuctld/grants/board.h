// One device of the scheduler: who is on it, how many SMs were decided for each, and how many the clients' pages say.
//
// A grant is a number of SMs, whichever they are, so what has to hold is a sum: what all clients together may be using
// is no more than the device has. A client that is busy and was made smaller may be using what it had until it says
// that it has left, or is past its deadline. Meanwhile as much is withheld from those who gain: what is decided takes
// hold in two phases. Each write() brings what is written closer to it: those who gain keep what they have, and get
// whatever nobody may be using, clients of slices with a reserve first. A client with nothing outstanding uses nothing,
// so nobody waits for it; what it may start with counts all the same.
//
// What a leaf's clients share at rest (sched/allocator.h) counts once, and when its slice has no client too: a reserve
// that is kept stays free during handovers. If several of its clients start in the same instant, others wait until they
// have shared it out.
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

class Board {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
  };

  /// A device of `sms` SMs. Those beyond kMaxSms are never granted: workers do not count so far.
  explicit Board(std::uint32_t sms);

  /// Clients came or went, or the tree changed.
  void renew(std::vector<Member> members);

  /// Whether the device's clients never run at the same time, but in turns (no MPS). Then nobody takes SMs from
  /// anybody: each has in its turns what its slice may have at most.
  void set_by_turns(bool on) {
    look_again_ |= by_turns_ != on;
    by_turns_ = on;
  }
  /// Whether all clients are to be ready to give SMs back, whatever is in force.
  void set_always_preemptible(bool on) {
    look_again_ |= always_ != on;
    always_ = on;
  }
  bool by_turns() const { return by_turns_; }

  std::span<const Member> members() const { return members_; }
  /// By member: whether anything but a policy for jobs would be in force.
  std::vector<bool> obeys_without_jobs(std::span<const sched::NodeInput> nodes) const;

  /// Decides how many SMs each client is to have. Writes nothing.
  void decide(sched::Allocator& allocator, std::span<const sched::NodeInput> nodes, std::uint64_t turn);

  /// Writes what was decided, as far as nobody else may be using it. `deadline`: see Client::overdue.
  void write(std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// For tests of programs: grants each client a random part of what was decided, until the next decision. Nobody
  /// waits for anybody.
  void storm(Random& random, std::uint64_t now_ns);

  /// Somebody was withheld SMs by the latest write().
  bool waiting() const { return waiting_; }
  /// Somebody with demand has nothing.
  bool starving() const { return starving_; }
  const sched::Decision& decision() const { return decision_; }
  std::uint32_t sms() const { return capacity_.count; }

 private:
  struct Node {
    bool reserved = false;
    bool inhabited = false;     ///< clients are directly in it
    std::uint32_t at_rest = 0;  ///< of a leaf: granted to each of its clients, beside its own part
    std::uint32_t there = 0;    ///< of these, what nobody else may be using
  };

  Client::Slot& slot(const Member& member) const { return member.client->slots()[member.slot]; }
  void decide_by_turns(std::span<const sched::NodeInput> nodes);
  void count_rest(std::span<const sched::NodeInput> nodes);
  /// Whether what is in force has to be looked at again.
  bool residents_changed();
  Circumstances circumstances() const;
  /// What is in force for each member, and how many SMs it can be sure of; tells them.
  void look_what_is_in_force(std::span<const sched::NodeInput> nodes);
  /// It may use the whole device, beside whoever else is there. What is decided for it is what others keep clear of.
  bool is_free(std::size_t member) const { return !storms_ && in_force_[member] == InForce::nothing; }
  /// Whether others may use what is reserved for the slice, until it has work.
  static bool may_be_lent(std::span<const sched::NodeInput> nodes, std::size_t index);
  /// Of its demand, what is set aside for the client: where nothing is in force for it, its slice's reserve alone.
  /// Beyond that the GPU decides who gets in, whatever is granted to others.
  std::uint32_t demand_that_counts(std::span<const sched::NodeInput> nodes, std::size_t member) const;
  /// Grant::reserve: what nobody outside of the slice can have. None for a slice that is limited too, itself or above
  /// it, because launches that rely on their reserve are not limited.
  std::uint32_t own_reserve(std::span<const sched::NodeInput> nodes, std::size_t index) const;
  void hand_over(std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  void place();
  void write_next(std::uint64_t now_ns);

  sched::CapSM capacity_;
  std::vector<Member> members_;
  std::vector<Resident> residents_;  ///< as in_force_ was decided for them
  std::vector<InForce> in_force_;    ///< by member, as are the next three
  std::vector<sched::ClientInput> inputs_;
  std::vector<std::uint32_t> next_;  ///< what is about to be written
  std::vector<std::uint32_t> most_;  ///< what the client may be using
  std::vector<Node> nodes_;          ///< by node
  sched::Decision decision_;
  bool by_turns_ = false, always_ = false, waiting_ = false, starving_ = false;
  bool look_again_ = true;  ///< what is in force may have changed
  bool storms_ = false;     ///< there was one: nobody is to think that he is alone
};

}  // namespace gpuctl::daemon
