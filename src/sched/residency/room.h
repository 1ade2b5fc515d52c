// The room that jobs share, in the unit in which they are granted it: SMs of a device, by number or by capacity, or
// workers of each kernel on every SM (sm_limits.h). The simulator and the daemon both ask it what fits.
#pragma once

#include <optional>

#include "sched/capsm.h"
#include "sched/residency/footprint.h"
#include "sched/residency/sm_limits.h"

namespace gpuctl::sched {

/// Not thread-safe.
class Room {
 public:
  /// `capacity` SMs; a job has whole ones.
  explicit Room(CapSM capacity) : capacity_(capacity) {}
  /// One SM, standing for all; a job has as many workers on each.
  explicit Room(const SmLimits& sm) : sm_(sm) {}
  /// `capacity` SMs, each of which the jobs share by capacity. What adds up to `capacity` fits, and so does what the
  /// resources of an SM suffice for.
  Room(const SmLimits& sm, CapSM capacity) : sm_(sm), capacity_(capacity) {}

  /// One job has `to` instead of `from` of this room from now on. False, with nothing changed, if it has more and that
  /// does not fit. What is given back always fits. Only a room whose SMs are shared looks at the job's blocks.
  bool change(const Footprint& job, CapSM from, CapSM to);
  /// The same, but it gets as much of `to` as fits. Returns what it has then, at least `from`.
  CapSM grow(const Footprint& job, CapSM from, CapSM to);
  /// A job has this much, whether it fits or not.
  void take(const Footprint& job, CapSM amount);

  /// Whether no job can get more, whatever it needs; only known of whole SMs.
  bool full() const { return !sm_ && taken_ >= capacity_; }

 private:
  SmUse use(const Footprint& job, CapSM amount) const;

  std::optional<SmLimits> sm_;
  CapSM capacity_{}, taken_{};
  SmUse use_;
};

}  // namespace gpuctl::sched
