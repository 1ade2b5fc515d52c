#include "gpuctld/manager/driver_limits.h"

#include <algorithm>
#include <utility>

#include "sched/joins.h"

namespace gpuctl::daemon {

using std::chrono::steady_clock;

DriverLimits::DriverLimits(boost::asio::io_context& context, std::vector<std::string> uuids, Hooks hooks, Pace pace)
    : uuids_(std::move(uuids)), hooks_(std::move(hooks)), pace_(pace), timer_(context) {}

void DriverLimits::look_soon() {
  if (soon_ || asks_ || over_) return;
  soon_ = true;
  look_at(rests_);
}

void DriverLimits::stop() {
  over_ = true;
  timer_.cancel();
}

void DriverLimits::look_at(Time time) {
  timer_.expires_at(time);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error && !asks_ && !over_) look();
  });
}

/// Of those that are due that comes first which waited longest, so that none holds up others.
void DriverLimits::look() {
  soon_ = false;
  follow();
  const Time now = steady_clock::now();
  Time soonest = Time::max();
  std::pair<const std::string, Group>* next = nullptr;
  for (auto& entry : groups_) {
    const Time at = due(entry.second, now);
    soonest = std::min(soonest, at);
    if (at <= now && (next == nullptr || entry.second.asked < next->second.asked)) next = &entry;
  }
  if (next != nullptr && hooks_.anybody())
    ask(next->first, next->second);
  else if (next == nullptr && soonest != Time::max())
    look_at(soonest);
}

/// What each group is to have now. One without programs stays limited: others of its processes may use the GPU.
void DriverLimits::follow() {
  const sched::Slices& slices = hooks_.slices();
  std::map<std::string, sched::GroupOfSlice> found;
  if (sched::join_by_cgroup(slices) && hooks_.anybody()) found = sched::groups_of_slices(slices, hooks_.programs());
  std::vector<sched::GroupedProgram> without;
  for (const auto& [cgroup, group] : groups_)
    if (!found.contains(cgroup)) without.push_back({cgroup, group.slice});
  found.merge(sched::groups_of_slices(slices, without));
  for (const auto& [cgroup, of] : found) groups_[cgroup].gpus.resize(uuids_.size());
  for (auto& [cgroup, group] : groups_) {
    if (const std::uint64_t id = hooks_.id_of(cgroup); std::exchange(group.id, id) != id)
      group.gpus.assign(uuids_.size(), {});
    std::vector<std::uint64_t> limits(uuids_.size(), sched::kNoDriverLimit);
    if (const auto of = found.find(cgroup); of != found.end() && !of->second.slice.empty()) {
      group.slice = of->second.slice;
      limits = hooks_.limits(group.slice, of->second.programs);
    }
    for (std::size_t i = 0; i < limits.size(); ++i) group.gpus[i].wanted = limits[i];
  }
  const auto limited = [](const OnGpu& gpu) { return gpu.told != sched::kNoDriverLimit; };
  std::erase_if(groups_, [&](const auto& entry) {
    return !found.contains(entry.first) && std::ranges::none_of(entry.second.gpus, limited);
  });
}

/// When the driver is to be told of the group: at once of more than it was told, later of less.
DriverLimits::Time DriverLimits::due(Group& group, Time now) const {
  const bool more = std::ranges::any_of(group.gpus, [](const OnGpu&gpu) { return gpu.wanted > gpu.told; }),
             less = std::ranges::any_of(group.gpus, [](const OnGpu&gpu) { return gpu.wanted < gpu.told; });
  group.lower = less ? std::min(group.lower, now + pace_.lower) : Time::max();
  if (group.id == 0 || (!more && !less)) group.problem.clear();
  return group.id == 0 ? Time::max() : std::max(group.again, more ? now : group.lower);
}

void DriverLimits::ask(const std::string& cgroup, Group& group) {
  GroupLimits question{.cgroup = cgroup, .gpus = {}};
  for (std::size_t i = 0; i < uuids_.size() && question.gpus.size() < kMostGpusAtOnce; ++i)
    if (const OnGpu& gpu = group.gpus[i]; gpu.wanted != gpu.told)
      question.gpus.push_back({.uuid = uuids_[i], .bytes = gpu.wanted});
  asks_ = true;
  group.lower = Time::max();
  group.asked = steady_clock::now();
  hooks_.ask(question, [this, question, began = group.asked](const Result<std::vector<std::string>>& outcomes) {
    constexpr int kRests = 4;  // times what it took
    asks_ = false;
    if (over_) return;
    hear(question, outcomes);
    const Time now = steady_clock::now();
    rests_ = now + std::max<Time::duration>(pace_.rest, kRests * (now - began));
    look_soon();
  });
}

void DriverLimits::hear(const GroupLimits& question, const Result<std::vector<std::string>>& outcomes) {
  if (outcomes && outcomes->empty()) {
    over_ = true;
    groups_.clear();
    return;
  }
  Group& group = groups_.at(question.cgroup);
  std::string why;
  for (std::size_t i = 0; i < question.gpus.size(); ++i) {
    const auto& [uuid, bytes] = question.gpus[i];
    OnGpu& gpu = group.gpus[static_cast<std::size_t>(std::ranges::find(uuids_, uuid) - uuids_.begin())];
    const std::string outcome = !outcomes              ? outcomes.error().message
                                : i < outcomes->size() ? (*outcomes)[i]
                                                       : "no answer for this GPU";
    if (outcome == kLimitSet || outcome == kNothingLimited)
      gpu.told = bytes, gpu.in_force = outcome == kLimitSet && bytes != sched::kNoDriverLimit;
    else
      why = outcome;
  }
  if (!why.empty()) {
    group.again = steady_clock::now() + pace_.again;
    if (group.problem != why)
      hooks_.log("the driver does not limit the memory of control group " + question.cgroup + " for slice " +
                 group.slice + ", the library alone does: " + why);
  }
  group.problem = why;
}

std::optional<std::uint64_t> DriverLimits::of(const std::string& slice, std::size_t gpu) const {
  std::optional<std::uint64_t> most;
  for (const auto& [cgroup, group] : groups_)
    if (group.slice == slice && group.gpus[gpu].in_force) most = std::max(most.value_or(0), group.gpus[gpu].told);
  return most;
}

std::optional<std::string> DriverLimits::problem() const {
  const auto found = std::ranges::find_if(groups_, [](const auto& entry) { return !entry.second.problem.empty(); });
  if (found == groups_.end()) return std::nullopt;
  return "slice " + found->second.slice +
         ": the driver does not limit the memory of its control group, the library alone does: " +
         found->second.problem;
}

}  // namespace gpuctl::daemon
