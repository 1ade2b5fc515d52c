// The room that jobs share, in the unit in which they are granted it: whole SMs of a device, or workers of each kernel
// on every SM (sm_limits.h).
#pragma once

#include <optional>

#include "sched/capsm.h"
#include "sched/residency/sm_limits.h"

namespace gpuctl::sched {

/// Not thread-safe.
class Room {
 public:
  /// `capacity` SMs; a job has whole ones.
  explicit Room(CapSM capacity) : capacity_(capacity) {}
  /// One SM, standing for all; a job has as many workers on each.
  explicit Room(const SmLimits& sm) : sm_(sm) {}

  /// One job has `to` instead of `from` of this room from now on. False, with nothing changed, if it has more and that
  /// does not fit. What is given back always fits. `block`: one of the job's, where SMs are shared.
  bool change(const BlockShape& block, CapSM from, CapSM to);
  /// The same, but it gets as much of `to` as fits. Returns what it has then, at least `from`.
  CapSM grow(const BlockShape& block, CapSM from, CapSM to);

  /// Whether no job can get more, whatever it needs; only known of whole SMs.
  bool full() const { return !sm_ && taken_ >= capacity_; }

 private:
  std::optional<SmLimits> sm_;
  CapSM capacity_{}, taken_{};
  SmUse use_;
};

}  // namespace gpuctl::sched
