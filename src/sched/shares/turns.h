// Turns: how those who are due less than one SM get it in the long run. While a client waits for its turn, the clients
// and the nodes of the device keep accounts of what they were due and did not get. The accounts of the turns that are
// over decide who has the odd SMs in the next one (WaterFiller::round). So each gets what it is due by weight, at each
// node, whatever idles beside it; and within a turn nothing moves because time passes. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "sched/shares/water_fill.h"

namespace gpuctl::sched {

/// Of one claimant.
struct TurnAccount {
  Due credit = 0;   ///< what it was due and did not get, as far as it counts in this turn
  Due pending = 0;  ///< what this turn adds

  /// It was due `due` and had `given`, less than one SM more or less, for such a part of a turn.
  void charge(Due due, CapSM given, std::chrono::nanoseconds elapsed, std::chrono::nanoseconds turn) {
    if (due == 0) credit = std::min(credit, Due{0});  // who wants nothing is owed nothing
    pending += (due - due_of(given)) * elapsed.count() / turn.count();
  }
  void end_turn() {
    credit = std::clamp(credit + pending, -kMost, kMost);
    pending = 0;
  }

 private:
  static constexpr Due kMost = 2 * kWholeSm;  // nobody waits long for what others had in an hour gone by
};

}  // namespace gpuctl::sched
