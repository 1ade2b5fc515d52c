// Targets of latency in a simulation: on each device SMs are kept for applications that have one, or, if these are
// isolated, turns of others become shorter, as the daemon does it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "sched/latency/control.h"
#include "sched/simulator/workload.h"

namespace gpuctl::sched {

class SimTargets {
 public:
  static constexpr Time kStep = std::chrono::milliseconds{200};

  SimTargets(const Workload& workload, std::uint64_t seed);

  /// When step() is due; kNever: no application has a target.
  Time next() const { return next_; }
  /// A launch of an application ended on a device.
  void ended(std::uint32_t device, std::uint32_t application, Time took);
  /// The devices on which something is kept that was not, or no more.
  std::vector<std::uint32_t> step(Time now);
  CapSM kept(std::uint32_t device, std::uint32_t application) const;
  /// How long a turn of the context may last on a device, because its applications yield; none: as long as it would.
  std::optional<Time> longest_turn(std::uint32_t device, std::size_t context) const;

 private:
  struct Device {
    LatencyControl control;
    std::vector<LatencyHistogram> bursts;  ///< by application
    std::vector<CapSM> kept;
    std::vector<std::optional<Time>> longest;  ///< by context
    std::uint64_t ended = 0;                   ///< launches of all
  };
  std::vector<NodeInput> nodes(std::uint32_t device) const;

  const Workload& workload_;
  const std::vector<std::uint32_t> context_of_;  ///< by application
  std::vector<Device> devices_;
  Time next_ = kNever;
};

/// How long a launch takes alone, drawn as the application says.
Time draw_duration(const Application& app, Random& random);

}  // namespace gpuctl::sched
