#include "sched/simulator/simulate.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

#include "base/random.h"
#include "sched/simulator/device.h"
#include "sched/simulator/targets.h"

namespace gpuctl::sched {

namespace {

// A longer launch counts as this where the next one is placed, so that those of a whole run have a sum.
constexpr Time kMostLoad{std::int64_t{1} << 39};
static_assert(kMostLaunches < (std::uint64_t{1} << 63) / static_cast<std::uint64_t>(kMostLoad.count()));

struct Start {
  std::uint32_t application, instance;
  Time at;
};

std::vector<Start> starts(const Workload& workload, Random& random) {
  std::vector<Start> fixed, ordered;
  for (std::uint32_t a = 0; a < workload.applications.size(); ++a) {
    const Application& app = workload.applications[a];
    for (std::uint32_t i = 0; i < app.instances; ++i) {
      if (app.start)
        fixed.push_back({a, i, *app.start});
      else
        ordered.push_back({a, i, {}});
    }
  }
  if (workload.order != Order::listed) random.shuffle(ordered);
  Time at{};
  for (Start& start : ordered) {
    start.at = at;
    const double gap = static_cast<double>(workload.gap.count());
    at += workload.order == Order::poisson ? Time{std::llround(random.exponential(gap))} : workload.gap;
    at = std::min(at, kEndOfTime + Time{1});
  }
  fixed.insert(fixed.end(), ordered.begin(), ordered.end());
  return fixed;
}

/// One run: its members are the state of the simulated clock, applications and devices.
class Simulation {
 public:
  Simulation(const Workload& workload, const PolicyMaker& make_policy, std::uint64_t seed)
      : workload_(workload), random_(seed), targets_(workload, seed) {
    outcome_.held.resize(workload.applications.size());
    devices_.reserve(workload.devices);
    for (std::uint32_t d = 0; d < workload.devices; ++d) {
      devices_.emplace_back(workload, d, make_policy(inputs(d)), jobs_, outcome_);
      loads_.emplace(Time{}, d);
    }
    load_.resize(workload.devices);
    next_.resize(workload.devices, kNever);
    std::uint64_t instances = 0;
    for (const Application& app : workload.applications) instances += app.instances;
    outcome_.too_many = instances > kMostLaunches;
    if (outcome_.too_many) return;
    for (const Start& start : starts(workload, random_)) {
      places_.push_back(workload.applications[start.application].device.value_or(kUnplaced));
      launches_left_.push_back(workload.applications[start.application].repeat);
      first_.push_back(start);
      pending_.push({start.at, sequence_++, static_cast<std::uint32_t>(places_.size() - 1)});
    }
  }

  Outcome run() {
    std::vector<std::uint32_t> touched;
    std::vector<JobId> finished;
    while (!outcome_.too_many) {
      while (!due_.empty() && next_[due_.top().device] != due_.top().at) due_.pop();
      Time now = pending_.empty() ? kNever : pending_.top().at;
      if (!due_.empty()) now = std::min(now, due_.top().at);
      if (now != kNever) now = std::min(now, targets_.next());
      if (now > kEndOfTime || now > workload_.until) break;

      touched.clear();
      for (; !due_.empty() && due_.top().at == now; due_.pop()) {
        if (next_[due_.top().device] == now) touch(due_.top().device, now, touched, finished);
      }
      for (; !pending_.empty() && pending_.top().at == now;) {
        const std::uint32_t source = pending_.top().source;
        pending_.pop();
        if (places_[source] == kUnplaced) places_[source] = loads_.begin()->second;
        touch(places_[source], now, touched, finished);
        launch(source, now);
      }
      if (now == targets_.next())
        for (const std::uint32_t d : targets_.step(now)) touch(d, now, touched, finished);
      for (const std::uint32_t d : touched) {
        next_[d] = devices_[d].decide(now);
        if (next_[d] != kNever) due_.push({next_[d], d});
      }
    }
    return std::move(outcome_);
  }

 private:
  static constexpr std::uint32_t kUnplaced = 0xffffffff;
  struct Pending {
    Time at;
    std::uint64_t sequence;
    std::uint32_t source;  ///< an instance of an application
    bool operator>(const Pending& other) const { return std::pair(at, sequence) > std::pair(other.at, other.sequence); }
  };
  struct Due {
    Time at;
    std::uint32_t device;
    bool operator>(const Due& other) const { return std::pair(at, device) > std::pair(other.at, other.device); }
  };

  /// Each application is a slice. Applications that are pinned to another device reserve nothing here.
  PolicyInputs inputs(std::uint32_t d) const {
    PolicyInputs inputs;
    inputs.curves = [&workload = workload_](std::uint32_t app) {
      return std::span<const CurvePoint>(workload.applications[app].curve);
    };
    inputs.sm = workload_.sm;
    inputs.blocks = [&workload = workload_](const Job& job) { return workload.applications[job.kernel].block; };
    if (targets_.next() != kNever)
      inputs.kept = [this, d](std::uint32_t application) { return targets_.kept(d, application); };
    for (const Application& app : workload_.applications) {
      inputs.slices.push_back(app.limits);
      inputs.slices.back().weight = app.weight;
      if (app.device && *app.device != d) inputs.slices.back().reserve = CapSM{};
    }
    return inputs;
  }

  /// Brings a device to `now`, once. After each launch that finished there, its application launches the next one.
  void touch(std::uint32_t d, Time now, std::vector<std::uint32_t>& touched, std::vector<JobId>& finished) {
    if (std::find(touched.begin(), touched.end(), d) != touched.end()) return;
    touched.push_back(d);
    next_[d] = kNever;
    finished.clear();
    devices_[d].run_until(now, finished);
    for (const JobId id : finished) {
      const std::uint32_t source = sources_[id];
      add_load(d, -std::min(jobs_[id].predicted, kMostLoad));
      outcome_.end = now;
      targets_.ended(d, jobs_[id].application, now - jobs_[id].arrived);
      const Application& app = workload_.applications[jobs_[id].application];
      const bool endless = app.endless && workload_.until != kNever;
      if (!endless && launches_left_[source] == 0) continue;
      if (app.think == Time{0})
        launch(source, now);
      else
        pending_.push({now + app.think, sequence_++, source});
    }
  }

  void launch(std::uint32_t source, Time now) {
    if (jobs_.size() == kMostLaunches) {
      outcome_.too_many = true;
      return;
    }
    const Start& start = first_[source];
    const Application& app = workload_.applications[start.application];
    if (launches_left_[source] > 0) --launches_left_[source];
    SimJob job;
    job.application = start.application;
    job.instance = start.instance;
    job.arrived = now;
    job.alone = draw_duration(app, random_);
    job.left = static_cast<double>(job.alone.count());
    // A prediction is at most ten times too short.
    const double factor =
        workload_.prediction_error > 0 ? std::max(0.1, 1 + workload_.prediction_error * random_.normal()) : 1;
    job.predicted = Time{std::llround(job.left * factor)};
    job.priority = app.priority;
    if (app.random_priority) {
      const auto [low, high] = *app.random_priority;
      job.priority = low + static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(high - low) + 1));
    }
    const JobId id = jobs_.size();
    jobs_.push_back(job);
    sources_.push_back(source);
    add_load(places_[source], std::min(job.predicted, kMostLoad));
    devices_[places_[source]].arrive(id, now);
  }

  void add_load(std::uint32_t d, Time change) {
    loads_.erase({load_[d], d});
    load_[d] += change;
    loads_.emplace(load_[d], d);
  }

  const Workload& workload_;
  Random random_;
  SimTargets targets_;
  Outcome outcome_;
  std::vector<SimJob> jobs_;
  std::vector<std::uint32_t> sources_;  ///< of each job: its source
  std::vector<SimDevice> devices_;
  std::vector<Time> load_;  ///< predicted work outstanding per device
  std::set<std::pair<Time, std::uint32_t>> loads_;
  std::vector<Time> next_;
  std::vector<std::uint32_t> places_;  ///< per instance: its device
  std::vector<std::uint64_t> launches_left_;
  std::vector<Start> first_;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

Outcome simulate(const Workload& workload, const PolicyMaker& make_policy, std::uint64_t seed) {
  return Simulation(workload, make_policy, seed).run();
}

Metrics measure(const Outcome& outcome) {
  std::vector<Served> served;
  served.reserve(outcome.launches.size());
  for (const Launch& launch : outcome.launches) served.push_back({launch.alone, launch.finished - launch.arrived});
  return measure(served);
}

}  // namespace gpuctl::sched
