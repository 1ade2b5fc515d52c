// The simulator's input: a device, the cost of preemption, and applications that launch kernels. Plain structs; gpuctl
// reads them from TOML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/latency_text.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

/// How the durations of the launches of one application vary.
enum class Vary { none, exponential, lognormal };

/// When the applications start.
enum class Order {
  listed,    ///< one after the other as they are listed, `gap` apart
  shuffled,  ///< like `listed`, in an order drawn from the seed
  poisson,   ///< independent, with exponential gaps of mean `gap`, in an order drawn from the seed
};

/// Its members are the keys of an [[application]] of a workload file.
struct Application {
  std::string name;
  Time alone{};                         ///< duration of one launch by itself on the whole device
  Vary vary = Vary::none;               ///< `alone` is the mean
  double deviation = 1;                 ///< lognormal: standard deviation of the logarithm
  Time task{};                          ///< duration of one block-task; 0: too short to be modelled
  std::optional<Time> preempt;          ///< instead of Workload::preempt
  CapSM need{};                         ///< the most it can fill; 0: the whole device, or SM
  std::vector<CurvePoint> curve;        ///< time by CapSM, also beyond `need`; empty: in proportion up to it
  BlockShape block;                     ///< where applications share each SM (Workload::sm)
  double issue = 0;                     ///< part of the issue slots that a launch by itself uses
  std::optional<Time> start;            ///< instead of the workload's order
  std::optional<std::uint32_t> device;  ///< less than Workload::devices
  SliceLimits limits;                   ///< for policies that know reserves; their weight is not used
  bool isolated = false;                ///< it has a context of its own, which takes turns with the others (turns.h)
  std::optional<Time> turn;             ///< how long its turns last, if it is isolated; none: kUsualTurn
  LatencyTarget latency;                ///< of the time from arrival to end, for `share`
  std::int32_t priority = 0;
  /// Of each launch, drawn from this range, both ends included.
  std::optional<std::pair<std::int32_t, std::int32_t>> random_priority;
  std::uint32_t weight = 1;
  std::uint32_t instances = 1;  ///< independent applications like this one
  std::uint64_t repeat = 1;     ///< launches of each, one after the other
  bool endless = false;         ///< launches until Workload::until
  Time think{};                 ///< time from the end of a launch to the next launch
};

/// How long a turn lasts by itself: the driver's, as measured.
inline constexpr Time kUsualTurn = std::chrono::microseconds{2048};

struct Workload {
  std::string title;
  std::uint32_t devices = 1;
  CapSM capsm{1};              ///< of each device; with `sm`: blocks that an SM holds
  std::optional<SmLimits> sm;  ///< if set, amounts count the workers of a launch on every SM (PolicyInputs::sm)
  Time preempt{};   ///< time from the last block-task until another job can use the SMs; no job works on them meanwhile
  Time dispatch{};  ///< time from when a job without SMs gets some until it works on them; its slice begins then
  Time turn = kUsualTurn;  ///< how long the turns of those last that are not isolated
  Time switch_cost{};      ///< of a switch from one context to another; nobody works meanwhile
  Time gap{};              ///< between the starts of applications
  Order order = Order::listed;
  double prediction_error = 0;  ///< standard deviation of the relative error of predicted durations
  Time until = kNever;          ///< launches that end later do not count
  std::uint32_t seeds = 1;      ///< number of runs unless the caller asks for another
  std::vector<Application> applications;
};

}  // namespace gpuctl::sched
