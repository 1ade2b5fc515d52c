#include "sched/simulator/targets.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sched/policy.h"
#include "sched/simulator/turns.h"

namespace gpuctl::sched {

namespace {

constexpr double kLongestDrawnNs = 1e17;  // three years: a launch that was drawn
constexpr int kDrawn = 500;               // launches that say what one takes alone

std::string path_of(std::uint32_t application) {
  return std::to_string(application);
}

}  // namespace

Time draw_duration(const Application& app, Random& random) {
  const double mean = static_cast<double>(app.alone.count());
  double drawn = mean;
  if (app.vary == Vary::exponential) drawn = random.exponential(mean);
  if (app.vary == Vary::lognormal)
    drawn = mean * std::exp(app.deviation * random.normal() - app.deviation * app.deviation / 2);
  return Time{std::max<std::int64_t>(std::llround(std::min(drawn, kLongestDrawnNs)), 1)};
}

SimTargets::SimTargets(const Workload& workload, std::uint64_t seed)
    : workload_(workload), context_of_(SimTurns::contexts_of(workload)) {
  std::vector<LatencyControl::Target> targets;
  const auto& applications = workload.applications;
  for (std::uint32_t a = 0; a < applications.size(); ++a)
    if (applications[a].latency.any()) targets.push_back({path_of(a), a + 1, applications[a].latency});
  if (targets.empty()) return;
  next_ = kStep;
  Random random(seed);
  devices_.resize(workload.devices);
  for (Device& device : devices_) {
    device.bursts.resize(applications.size());
    device.kept.resize(applications.size());
    for (const LatencyControl::Target& target : targets) {
      LatencyHistogram alone;
      for (int i = 0; i < kDrawn; ++i) alone.add(draw_duration(applications[target.node - 1], random));
      device.control.saw_alone(target.path, alone, Time{});
    }
    device.control.renew(targets, [](const std::string&) { return true; });
  }
}

void SimTargets::ended(std::uint32_t device, std::uint32_t application, Time took) {
  if (devices_.empty()) return;
  devices_[device].bursts[application].add(took);
  ++devices_[device].ended;
}

std::vector<NodeInput> SimTargets::nodes(std::uint32_t device) const {
  std::vector<NodeInput> nodes{{.reserve = workload_.capsm, .policy = &policies().front()}};
  for (const Application& app : workload_.applications) {
    NodeInput& node = nodes.emplace_back(nodes.front());
    node.parent = 0;
    node.reserve = app.isolated || (app.device && *app.device != device) ? CapSM{} : app.limits.reserve;
    node.max = app.limits.max;
  }
  return nodes;
}

std::vector<std::uint32_t> SimTargets::step(Time now) {
  std::vector<std::uint32_t> changed;
  next_ = now + kStep;
  const std::size_t contexts = SimTurns::context_count(workload_);
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    std::vector<NodeInput> kept = nodes(d);
    std::vector<LatencyStep> steps;
    for (const LatencyControl::Entry& entry : device.control.entries()) {
      const LatencyHistogram& bursts = device.bursts[entry.node - 1];
      const int last_kept = workload_.applications[entry.node - 1].isolated ? 0 : kTurnRungs;
      steps.push_back({.now = now,
                       .bursts = &bursts,
                       .active = bursts.count() > 0,
                       .last = {0, contexts > 1 ? kTurnRungs : 0, last_kept},
                       .launches = static_cast<double>(device.ended - bursts.count())});
    }
    const bool turned = device.control.step(kept, steps);
    std::ranges::fill(device.bursts, LatencyHistogram{});
    device.ended = 0;
    if (!turned) continue;
    changed.push_back(d);
    const std::vector<NodeInput> before = kept;
    keep_for(kept, device.control.slices());
    const auto longest = longest_turns(before, device.control.slices());
    device.longest.assign(contexts, std::nullopt);
    for (std::size_t a = 0; a < workload_.applications.size(); ++a) {
      std::optional<Time>& its = device.longest[context_of_[a]];
      if (longest[a + 1]) its = std::min<Time>(its.value_or(kNever), *longest[a + 1]);
    }
    for (std::size_t a = 0; a < device.kept.size(); ++a) device.kept[a] = kept[a + 1].reserve - before[a + 1].reserve;
  }
  return changed;
}

std::optional<Time> SimTargets::longest_turn(std::uint32_t device, std::size_t context) const {
  if (device >= devices_.size() || context >= devices_[device].longest.size()) return std::nullopt;
  return devices_[device].longest[context];
}

CapSM SimTargets::kept(std::uint32_t device, std::uint32_t application) const {
  return devices_.empty() ? CapSM{} : devices_[device].kept[application];
}

}  // namespace gpuctl::sched
