// One device of the scheduler: who is on it, what was decided, and which SMs the clients' pages name.
//
// The handover. What is decided takes hold in two phases: an SM that is taken from a client is withheld from whoever
// gains it until that client is known to have left it, or is past its deadline. So what is written is what was decided
// less the SMs still held by others; write() brings it closer each time. A client with nothing outstanding holds
// nothing, and nobody waits for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "gpuctld/client.h"
#include "sched/allocator.h"
#include "sched/placement.h"

namespace gpuctl::daemon {

class Board {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
    bool operator==(const Member&) const = default;
  };

  explicit Board(std::uint32_t sms) : placement_(sms) {}

  /// Clients came or went, or the tree changed: those that stay are in the order they had, new ones last. `node_was`:
  /// the index that each node had, or -1.
  void renew(const std::vector<Member>& members, std::span<const std::int32_t> node_was);

  /// Decides who is to have which SMs. Writes nothing.
  void decide(sched::Allocator& allocator, std::span<const sched::NodeInput> nodes, std::uint64_t turn);

  /// Writes what was decided, as far as nobody else holds it. `deadline`: see Client::overdue.
  void write(std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// For tests of programs: grants a random subset of what was decided to each client, until the next decision. Nobody
  /// waits for anybody.
  void storm(std::mt19937_64& random, std::uint64_t now_ns);

  /// Somebody was withheld SMs by the latest write().
  bool waiting() const { return waiting_; }
  /// Somebody with demand has nothing.
  bool starving() const { return starving_; }
  const sched::Decision& decision() const { return decision_; }
  std::uint32_t sms() const { return placement_.capacity().count; }

 private:
  Client::Slot& slot(const Member& member) const { return member.client->slots()[member.slot]; }
  void hand_over(std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  void write_next(std::uint64_t now_ns);

  sched::Placement placement_;
  std::vector<Member> members_;
  std::vector<sched::ClientInput> inputs_;  ///< by member, as are the next two
  std::vector<SmSet> next_;                 ///< what is about to be written
  std::vector<SmSet> leaving_;              ///< what the client may be using and is to use no more
  sched::Decision decision_;
  bool waiting_ = false, starving_ = false;
};

}  // namespace gpuctl::daemon
