#include "sched/simulator/device.h"

#include <algorithm>
#include <cmath>

namespace gpuctl::sched {

namespace {
constexpr double kDone = 0.5;  // ns of work that the rounding of event times may leave
constexpr auto kEndOfTimeNs = static_cast<double>(kEndOfTime.count());

double seconds(Time t) {
  return static_cast<double>(t.count()) * 1e-9;
}
}  // namespace

SimDevice::SimDevice(const Workload& workload, std::uint32_t index, std::unique_ptr<JobPolicy> policy,
                     std::vector<SimJob>& jobs, Outcome& outcome)
    : workload_(workload),
      index_(index),
      scheduler_(std::move(policy), workload.capsm),
      jobs_(jobs),
      outcome_(outcome),
      room_(workload.sm ? Room(*workload.sm) : Room(workload.capsm)) {}

CapSM SimDevice::usable(const SimJob& job) const {
  const CapSM need = application(job).need;
  const CapSM most = workload_.sm ? CapSM{most_blocks(*workload_.sm, application(job).block)} : workload_.capsm;
  return need.count == 0 ? most : std::min(need, most);
}

/// The most that makes it faster. Its blocks may fill fewer, and then have less company on each of these.
CapSM SimDevice::useful(const SimJob& job) const {
  const auto& curve = application(job).curve;
  const CapSM most = curve.empty() ? CapSM{} : std::min(curve.back().capsm, workload_.capsm);
  return std::max(usable(job), most);
}

// Work per time with `capsm` CapSM; 1 is the whole device alone. Speeds are interpolated, not times, because the speed
// with nothing is 0.
double SimDevice::speed(const SimJob& job, double capsm) const {
  const auto& curve = application(job).curve;
  if (curve.empty()) return std::min(1.0, capsm / usable(job).count);
  const double alone = static_cast<double>(application(job).alone.count());
  double below = 0, speed_below = 0;
  for (const CurvePoint& point : curve) {
    const double at = point.capsm.count, speed_at = alone / static_cast<double>(point.whole.count());
    if (capsm <= at) return speed_below + (speed_at - speed_below) * (capsm - below) / (at - below);
    below = at, speed_below = speed_at;
  }
  return speed_below;
}

void SimDevice::set_turn(Time from) {
  spent_ = own_;
  turn_from_ = from;
}

Time SimDevice::own(Time now) const {
  return spent_ + std::max(Time{0}, now - turn_from_);
}

Time SimDevice::real(Time own) const {
  return own - spent_ > kNever - turn_from_ ? kNever : turn_from_ + (own - spent_);
}

double SimDevice::rate(JobId id) const {
  const double alone = undisturbed(id);
  if (alone == 0 || application(jobs_[id]).issue == 0) return alone;
  double needed = 0;  // issue slots, of all
  for (const JobId other : active_) needed += application(jobs_[other]).issue * undisturbed(other);
  return alone / std::max(1.0, needed);
}

double SimDevice::undisturbed(JobId id) const {
  if (jobs_[id].works_from > own_) return 0;
  double capsm = jobs_[id].held.count;
  for (const Drain& drain : drains_)
    if (drain.job == id && drain.working_until > own_) capsm += 0.5 * drain.capsm.count;
  return capsm == 0 ? 0 : speed(jobs_[id], capsm);
}

Time SimDevice::eviction_cost(const SimJob& job) const {
  return application(job).preempt.value_or(workload_.preempt);
}

CapSM SimDevice::taken(JobId id) const {
  CapSM capsm = jobs_[id].held;
  for (const Drain& drain : drains_)
    if (drain.job == id) capsm += drain.capsm;
  return capsm;
}

/// Part of what is taken() becomes free; it still is among what is held or drained.
void SimDevice::free(JobId id, CapSM capsm) {
  const CapSM before = taken(id);
  room_.change(application(jobs_[id]).block, before, before - capsm);
}

bool SimDevice::draining(JobId id) const {
  return std::any_of(drains_.begin(), drains_.end(), [&](const Drain& drain) { return drain.job == id; });
}

void SimDevice::run_until(Time now, std::vector<JobId>& finished) {
  const Time elapsed = own(now) - own_;
  for (const JobId id : active_) {
    SimJob& job = jobs_[id];
    job.left -= rate(id) * static_cast<double>(elapsed.count());
    outcome_.held[job.application] += job.held.count * seconds(elapsed);
    if (job.works_from > own_) outcome_.lost += job.held.count * seconds(elapsed);
  }
  for (const Drain& drain : drains_)
    outcome_.lost += drain.capsm.count * seconds(elapsed) * (drain.working_until > own_ ? 0.5 : 1.0);
  own_ = own(now);

  for (const JobId id : active_) {
    SimJob& job = jobs_[id];
    if (job.left > kDone) continue;
    free(id, taken(id));
    std::erase_if(drains_, [&](const Drain& drain) { return drain.job == id; });
    job.held = {};
    const Job& seen = *scheduler_.find(id);
    outcome_.launches.push_back({job.application, job.instance, index_, job.priority, seen.evictions, job.arrived, now,
                                 job.alone, seen.waited_at(now)});
    outcome_.evictions += seen.evictions;
    scheduler_.complete(id, now);
    std::erase(wanting_, id);
    finished.push_back(id);
  }
  std::erase_if(active_, [&](JobId id) { return jobs_[id].left <= kDone; });

  for (std::size_t i = 0; i < drains_.size();) {
    if (drains_[i].free_at > own_) {
      ++i;
      continue;
    }
    free(drains_[i].job, drains_[i].capsm);
    drains_.erase(drains_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  grow(now);
  std::erase_if(active_, [&](JobId id) {
    const bool out = jobs_[id].held.count == 0 && !draining(id);
    if (out) scheduler_.evicted(id, now);
    return out;
  });
  start_those_ready(now);
}

void SimDevice::arrive(JobId id, Time now) {
  const SimJob& job = jobs_[id];
  const Application& app = application(job);
  scheduler_.arrive({.id = id,
                     .owner = (std::uint64_t{job.application} << 32) | job.instance,
                     .kernel = job.application,
                     .slice = job.application,
                     .priority = job.priority,
                     .weight = app.weight,
                     .need = usable(job),
                     .predicted = job.predicted,
                     .eviction = eviction_cost(job) + app.task},
                    now);
}

void SimDevice::decide(Time now) {
  for (const JobId id : active_) {
    SimJob& job = jobs_[id];
    const Time task = application(job).task;
    if (!job.tail && task > Time{0} && job.left <= rate(id) * static_cast<double>(task.count()) + kDone) {
      job.tail = true;
      scheduler_.tail(id, now);
    }
    const double fraction = std::max(job.left, 0.0) / static_cast<double>(job.alone.count());
    scheduler_.observe(id, Time{std::llround(fraction * static_cast<double>(job.predicted.count()))}, now);
  }
  // A job that starts at once begins its slice, so the policy is asked again, as after every report.
  for (;;) {
    const JobDecision decision = scheduler_.decide(now);
    ++outcome_.decisions;
    for (const Grant& grant : decision.changed) {
      SimJob& job = jobs_[grant.job];
      job.target = std::min(grant.capsm, useful(job));
      if (job.target < job.held) shrink(grant.job, job.target, now);
      std::erase(wanting_, grant.job);
      if (job.target > job.held) wanting_.push_back(grant.job);
    }
    again_ = decision.again;
    if (!grow(now)) return;
  }
}

void SimDevice::shrink(JobId id, CapSM to, Time now) {
  SimJob& job = jobs_[id];
  if (job.tail) return;
  const CapSM leaving = job.held - to;
  const bool works = job.works_from <= own_;
  const Time working_until = works ? own_ + application(job).task : own_;
  const Time free_at = works ? working_until + eviction_cost(job) : own_;
  if (free_at <= own_) free(id, leaving);
  job.held = to;
  if (free_at > own_) drains_.push_back({id, leaving, working_until, free_at});
  if (to.count == 0 && free_at == own_) {
    std::erase(active_, id);
    std::erase(starting_, id);
    scheduler_.evicted(id, now);
  }
}

/// True if a job started.
bool SimDevice::grow(Time now) {
  for (const JobId id : wanting_) {
    SimJob& job = jobs_[id];
    const CapSM before = taken(id), wanted = before + job.target - job.held;
    const CapSM more = room_.grow(application(job).block, before, wanted) - before;
    if (more.count == 0) continue;
    job.held += more;
    if (std::find(active_.begin(), active_.end(), id) == active_.end()) {
      active_.push_back(id);
      starting_.push_back(id);
      job.works_from = own_ + workload_.dispatch;
    }
  }
  std::erase_if(wanting_, [&](JobId id) { return jobs_[id].held >= jobs_[id].target; });
  return start_those_ready(now);
}

/// Starts those that have SMs and whose dispatch is over, while the context has the GPU; true if there is one. A job
/// that lost its SMs before is no longer active.
bool SimDevice::start_those_ready(Time now) {
  if (now < turn_from_) return false;
  const auto ready = [&](JobId id) { return jobs_[id].works_from <= own_; };
  for (const JobId id : starting_)
    if (ready(id)) scheduler_.started(id, now);
  return std::erase_if(starting_, ready) > 0;
}

Time SimDevice::next_event(Time now) const {
  Time next = kNever;  // of the GPU, by the context's own time
  for (const JobId id : active_) {
    const SimJob& job = jobs_[id];
    if (job.works_from > own_) next = std::min(next, job.works_from);
    const double pace = rate(id);
    if (pace <= 0) continue;
    const double takes = std::ceil(std::max(job.left, 0.0) / pace);
    if (takes >= kEndOfTimeNs) continue;
    const Time end = own_ + Time{static_cast<std::int64_t>(takes)};
    next = std::min(next, std::max(end, own_ + Time{1}));
    const Time task = application(job).task;
    if (!job.tail && task > Time{0}) next = std::min(next, std::max(end - task, own_ + Time{1}));
  }
  for (const Drain& drain : drains_)
    next = std::min(next, drain.working_until > own_ ? drain.working_until : drain.free_at);
  next = std::min(again_, next == kNever ? kNever : real(next));
  // Those that got SMs while others had the GPU begin with the turn.
  for (const JobId id : starting_)
    if (jobs_[id].works_from <= own_ && now <= turn_from_) next = std::min(next, turn_from_);
  return next <= kEndOfTime ? next : kNever;
}

}  // namespace gpuctl::sched
