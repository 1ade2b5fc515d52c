#include "sched/simulator/simulate.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

#include "base/random.h"
#include "sched/simulator/device.h"
#include "sched/simulator/targets.h"
#include "sched/simulator/turns.h"

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
      : workload_(workload), random_(seed), targets_(workload, seed), context_of_(SimTurns::contexts_of(workload)) {
    outcome_.held.resize(workload.applications.size());
    contexts_ = static_cast<std::uint32_t>(SimTurns::context_count(workload));
    units_.reserve(std::size_t{workload.devices} * contexts_);
    for (std::uint32_t d = 0; d < workload.devices; ++d) {
      for (std::uint32_t c = 0; c < contexts_; ++c) {
        units_.emplace_back(workload, d, make_policy(inputs(d, c)), jobs_, outcome_);
        if (c > 0) units_.back().set_turn(kNever);
      }
      loads_.emplace(Time{}, d);
      if (contexts_ > 1) turns_.emplace_back(workload);
    }
    load_.resize(workload.devices);
    next_.resize(units_.size() + turns_.size(), kNever);
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
      while (!due_.empty() && next_[due_.top().unit] != due_.top().at) due_.pop();
      Time now = pending_.empty() ? kNever : pending_.top().at;
      if (!due_.empty()) now = std::min(now, due_.top().at);
      if (now != kNever) now = std::min(now, targets_.next());
      if (now > kEndOfTime || now > workload_.until) break;

      touched.clear();
      for (; !due_.empty() && due_.top().at == now; due_.pop()) {
        const std::uint32_t unit = due_.top().unit;
        if (next_[unit] != now) continue;
        if (unit < units_.size())
          touch(unit, now, touched, finished);
        else
          touch(static_cast<std::uint32_t>(unit - units_.size()) * contexts_, now, touched, finished);
      }
      for (; !pending_.empty() && pending_.top().at == now;) {
        const std::uint32_t source = pending_.top().source;
        pending_.pop();
        if (places_[source] == kUnplaced) places_[source] = loads_.begin()->second;
        touch(unit_of(source), now, touched, finished);
        launch(source, now);
      }
      if (now == targets_.next())
        for (const std::uint32_t d : targets_.step(now)) {
          for (std::uint32_t c = 0; c < contexts_; ++c) touch(d * contexts_ + c, now, touched, finished);
          if (contexts_ > 1)
            for (std::uint32_t c = 0; c < contexts_; ++c) turns_[d].bound(c, targets_.longest_turn(d, c));
        }
      // All contexts of a device are at `now` before the turn goes to another one.
      if (contexts_ > 1) touch_all_contexts(now, touched, finished);
      for (const std::uint32_t unit : touched) units_[unit].decide(now);
      if (contexts_ > 1) take_turns(now, touched);
      for (const std::uint32_t unit : touched) wake(unit, units_[unit].next_event(now));
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
    std::uint32_t unit;
    bool operator>(const Due& other) const { return std::pair(at, unit) > std::pair(other.at, other.unit); }
  };

  std::uint32_t unit_of(std::uint32_t source) const {
    return places_[source] * contexts_ + context_of_[first_[source].application];
  }
  void wake(std::uint32_t unit, Time at) {
    next_[unit] = at;
    if (at != kNever) due_.push({at, unit});
  }

  /// Of each device of which one was touched.
  void touch_all_contexts(Time now, std::vector<std::uint32_t>& touched, std::vector<JobId>& finished) {
    for (std::size_t i = 0, count = touched.size(); i < count; ++i) {
      const std::uint32_t first = touched[i] / contexts_ * contexts_;
      for (std::uint32_t c = 0; c < contexts_; ++c) touch(first + c, now, touched, finished);
    }
  }

  /// On each device of which something was touched.
  void take_turns(Time now, const std::vector<std::uint32_t>& touched) {
    for (const std::uint32_t unit : touched) {
      if (unit % contexts_ != 0) continue;
      SimTurns& turns = turns_[unit / contexts_];
      std::vector<bool> work;
      for (std::uint32_t c = 0; c < contexts_; ++c) work.push_back(units_[unit + c].has_work());
      const std::size_t before = turns.current();
      if (turns.step(now, work)) {
        units_[unit + before].set_turn(kNever);
        units_[unit + turns.current()].set_turn(turns.works_from());
        outcome_.lost += workload_.capsm.count * static_cast<double>(workload_.switch_cost.count()) * 1e-9;
      }
      wake(static_cast<std::uint32_t>(units_.size()) + unit / contexts_, turns.due(work));
    }
  }

  /// Each application is a slice. Applications that are pinned to another device, or have another context, reserve
  /// nothing here.
  PolicyInputs inputs(std::uint32_t d, std::uint32_t context) const {
    PolicyInputs inputs;
    inputs.curves = [&workload = workload_](std::uint32_t app) {
      return std::span<const CurvePoint>(workload.applications[app].curve);
    };
    inputs.sm = workload_.sm;
    inputs.blocks = [&workload = workload_](const Job& job) { return workload.applications[job.kernel].block; };
    if (targets_.next() != kNever)
      inputs.kept = [this, d, context](std::uint32_t application) {
        return context_of_[application] == context ? targets_.kept(d, application) : CapSM{};
      };
    for (std::size_t a = 0; a < workload_.applications.size(); ++a) {
      const Application& app = workload_.applications[a];
      inputs.slices.push_back(app.limits);
      inputs.slices.back().weight = app.weight;
      if ((app.device && *app.device != d) || context_of_[a] != context) inputs.slices.back().reserve = CapSM{};
    }
    return inputs;
  }

  /// Brings a context of a device to `now`, once. After each launch that finished there, its application launches the
  /// next one.
  void touch(std::uint32_t unit, Time now, std::vector<std::uint32_t>& touched, std::vector<JobId>& finished) {
    if (std::find(touched.begin(), touched.end(), unit) != touched.end()) return;
    const std::uint32_t d = unit / contexts_;
    touched.push_back(unit);
    next_[unit] = kNever;
    finished.clear();
    units_[unit].run_until(now, finished);
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
    units_[unit_of(source)].arrive(id, now);
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
  std::vector<std::uint32_t> sources_;           ///< of each job: its source
  std::uint32_t contexts_ = 1;                   ///< of each device
  const std::vector<std::uint32_t> context_of_;  ///< by application
  std::vector<SimDevice> units_;                 ///< by device, then context
  std::vector<SimTurns> turns_;  ///< by device, if there are several contexts; woken as units after these
  std::vector<Time> load_;       ///< predicted work outstanding per device
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
