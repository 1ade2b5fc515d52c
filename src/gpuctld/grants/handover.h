// How a decision takes hold on one device. Pure.
//
// A grant is a number of SMs, no particular ones, so it is a sum that must hold: all clients together may use no more
// than the device has. A busy client whose grant shrank may go on using what it had until it says that it has left, or
// until its deadline has passed. Meanwhile as many SMs are withheld from the clients that gain. So a decision takes
// hold in two phases. Each step brings the written grants closer to it: clients that gain keep what they have and get
// what no other client may be using, clients of slices with a reserve first. A client with nothing outstanding uses
// nothing, so no client waits for it; what it may start with counts all the same.
//
// What the clients of a leaf share at rest (sched/allocator.h) counts once, even if its slice has no client: a reserve
// that is kept stays free during handovers. If several of its clients start in the same instant, other clients wait
// until these have divided it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpuctld/grants/device_decision.h"

namespace gpuctl::daemon {

/// What is known of a client's grant before the next one is written.
struct GrantState {
  std::uint32_t written = 0;  ///< as its page says
  std::uint32_t may_use = 0;  ///< the most that it may be using while it is busy
  bool busy = false;
  bool overdue = false;  ///< its deadline to give SMs back has passed
  /// It may be using no more than `written`, although `may_use` counts against others: it gets more only from the room.
  bool doubtful = false;
};

/// What a client's page is to say.
struct NextGrant {
  std::uint32_t capsm = 0;
  std::uint32_t idle = 0;   ///< Grant::idle
  std::uint32_t first = 0;  ///< Grant::first
};

class Handover {
 public:
  /// Finds how much of the decision can be granted now, in `next` by client. True if SMs are withheld from a client, so
  /// another step must follow. The object is scratch space alone.
  bool step(const DeviceDecision& decision, std::span<const GrantState> clients, std::uint32_t sms,
            std::span<NextGrant> next);

 private:
  std::vector<std::uint32_t> at_rest_;  ///< by node: the part of NodeRest::at_rest that no other client may be using
  std::vector<std::uint32_t> most_;     ///< by client: what it may be using
};

/// Adds to grants of so many CapSM where they lie, which was decided, and what is idle, and gives free clients the
/// whole device.
void place(const DeviceDecision& decision, std::span<const GrantState> clients, const DeviceConditions& where,
           std::span<NextGrant> next);

}  // namespace gpuctl::daemon
