// What the simulator is given: a device, how expensive preemption is, and applications that launch kernels. Plain
// structs; gpuctl reads them from TOML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

/// How the durations of the launches of one application vary.
enum class Vary { none, exponential, lognormal };

/// When the applications start.
enum class Order {
  listed,    ///< one after the other as they are listed, `gap` apart
  shuffled,  ///< the same in an order drawn from the seed
  poisson,   ///< independent, with exponential gaps of mean `gap`, in an order drawn from the seed
};

struct Application {
  std::string name;
  Time alone{};                         ///< one launch by itself on the whole device
  Vary vary = Vary::none;               ///< `alone` is then the mean
  double deviation = 1;                 ///< lognormal: standard deviation of the logarithm
  Time task{};                          ///< one block-task; 0: so short that it need not be modelled
  std::optional<Time> preempt;          ///< instead of Workload::preempt
  CapSM need{};                         ///< the most it can fill; 0: the whole device
  std::vector<CurvePoint> curve;        ///< time by CapSM; empty: in proportion up to `need`
  std::optional<Time> start;            ///< instead of the workload's order
  std::optional<std::uint32_t> device;  ///< less than Workload::devices
  SliceLimits limits;                   ///< for policies that know reserves; its weight is not used
  std::int32_t priority = 0;
  std::optional<std::pair<std::int32_t, std::int32_t>> random_priority;  ///< of each launch, both ends included
  std::uint32_t weight = 1;
  std::uint32_t instances = 1;  ///< independent applications like this one
  std::uint64_t repeat = 1;     ///< launches of each, one after the other
  bool endless = false;         ///< launches until Workload::until
  Time think{};                 ///< from the end of a launch to the next
};

struct Workload {
  std::string title;
  std::uint32_t devices = 1;
  CapSM capsm{1};   ///< of each device
  Time preempt{};   ///< from the last block-task to the SMs being of use to somebody else; nobody works in it
  Time dispatch{};  ///< from a job's being given SMs when it has none to its working on them; its slice begins then
  Time gap{};       ///< between the starts of applications
  Order order = Order::listed;
  double prediction_error = 0;  ///< standard deviation of the relative error of predicted durations
  Time until = kNever;          ///< launches that end later do not count
  std::uint32_t seeds = 1;      ///< how often to run it unless asked otherwise
  std::vector<Application> applications;
};

}  // namespace gpuctl::sched
