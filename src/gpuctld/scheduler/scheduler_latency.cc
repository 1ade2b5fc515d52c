// Targets of latency: what is seen of the slices' bursts goes to sched's control, and what that decides into the tree
// of each device, the levels and the time slices. How the dials are turned: sched/latency/steer.h.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/latency_text.h"
#include "gpuctld/scheduler/scheduler.h"
#include "sched/effective/fit_reserves.h"
#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

/// Long beside the daemon's tick, short beside a second.
constexpr std::uint64_t kStepNs = 200'000'000;
/// A program had no work if it has launched nothing for so long, and no burst of its goes on. Programs say both five
/// times a second.
constexpr std::uint64_t kQuietNs = 500'000'000;
/// A program that was held so long ago, and has said since that no burst of its goes on, has nothing left.
constexpr std::uint64_t kSaysOpenNs = 300'000'000;

std::chrono::nanoseconds time_of(std::uint64_t now_ns) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(now_ns));
}

}  // namespace

/// After the tree has changed.
void Scheduler::renew_targets() {
  std::vector<sched::LatencyControl::Target> targets;
  for (std::uint32_t node = 0; const auto& [path, slice] : tree_.slices()) {
    if (const auto target = parse_latency(slice.latency);
        target && target->any() &&
        (effective_[node].ruler < 0 || effective_[node].ruler == static_cast<std::int32_t>(node)))
      targets.push_back({path, node, *target});
    ++node;
  }
  controls_.resize(grants_.size());
  seen_.resize(grants_.size());
  const auto exists = [this](const std::string& path) { return tree_.find(path) != nullptr; };
  for (std::size_t device = 0; device < controls_.size(); ++device) {
    for (const sched::LatencyControl::Target& target : targets)
      if (controls_[device].find(target.path) == nullptr) seen_[device].bursts.erase(target.path);  // from now on
    controls_[device].renew(targets, exists);
  }
  for (Seen& seen : seen_) {
    std::erase_if(seen.bursts, [&](const auto& entry) { return !exists(entry.first); });
    std::erase_if(seen.quiet, [&](const auto& entry) { return !exists(entry.first); });
  }
}

std::vector<sched::WithTarget> Scheduler::levels_above() const {
  std::vector<sched::WithTarget> slices;
  for (const sched::LatencyControl& control : controls_)
    for (const sched::WithTarget& slice : control.slices()) {
      const auto known = std::ranges::find(slices, slice.node, &sched::WithTarget::node);
      if (known == slices.end())
        slices.push_back(slice);
      else
        known->rungs[0] = std::max(known->rungs[0], slice.rungs[0]);  // a program has its levels on all devices
    }
  return slices;
}

void Scheduler::seek_target_anew(const std::string& slice, std::uint64_t now_ns) {
  for (sched::LatencyControl& control : controls_) control.begin_anew(slice, time_of(now_ns));
}

/// The bursts of a slice that are new since the last step at which somebody asked for them, without those of programs
/// that have not warmed up.
sched::LatencyHistogram Scheduler::new_bursts(std::size_t device, const std::string& path) {
  sched::LatencyHistogram now;
  if (const auto* warm = latencies_.warm(path, static_cast<int>(device))) now = *warm;
  sched::LatencyHistogram more;
  const auto [known, is_new] = seen_[device].bursts.try_emplace(path, now);
  if (is_new) return more;
  sched::LatencyHistogram& before = known->second;
  for (std::size_t i = 0; i < kLatencyBuckets; ++i)
    more.add_to_bucket(i, now.counts()[i] - std::min(now.counts()[i], before.counts()[i]));
  before = now;
  return more;
}

/// What one step sees of a device.
struct Scheduler::DeviceWork {
  struct Program {
    const Client* client = nullptr;
    std::uint64_t launches = 0;  ///< since the last step
    bool works = false, lately = false;
    bool still = false;    ///< nothing of it is on the device, and nothing comes while it is held
    bool leaving = false;  ///< it may still be using SMs that it is to leave
  };
  std::vector<Program> programs;

  /// Of those that are in no such slice: the same number for the same programs, in any order.
  sched::IsolationRecord::Others others_of(const std::string& slice) const {
    sched::IsolationRecord::Others others;
    for (const Program& program : programs) {
      if (sched::in_or_below(program.client->slice(), slice)) continue;
      others.launches += static_cast<double>(program.launches);
      const std::hash<std::string> number;
      others.who += number(program.client->slice()) * 31 + number(program.client->program());
    }
    return others;
  }
};

/// Those that the client made before this is first asked do not count.
std::uint64_t Scheduler::new_launches(const Client& client, const Client::Slot& slot) {
  const auto known = launches_.try_emplace({&client, slot.device}, slot.launches).first;
  const std::uint64_t before = std::exchange(known->second, slot.launches);
  return slot.launches - std::min(before, slot.launches);
}

Scheduler::DeviceWork Scheduler::work_on(std::size_t device, std::uint64_t now_ns) {
  DeviceWork work;
  each_member(device, [&](const DeviceGrants::Member& member) {
    const Client::Slot& slot = member.client->slots()[member.slot];
    const bool now = slot.busy() || member.client->in_burst(member.slot);
    const bool lately = slot.work_ns != 0 && now_ns < slot.work_ns + kQuietNs;
    const bool frozen = effective_[member.client->node].frozen && slot.may_use() == 0;  // what it has waits
    work.programs.push_back(
        {.client = member.client,
         .launches = new_launches(*member.client, slot),
         .works = !frozen && (now || lately),
         .lately = slot.busy() || lately,
         .still = frozen || member.client->is_still(member.slot) || (!now && now_ns >= slot.work_ns + kSaysOpenNs),
         .leaving = slot.busy() && slot.terms.in_force != InForce::nothing && slot.may_use() > slot.decided});
  });
  return work;
}

sched::LatencyStep Scheduler::step_of(std::size_t device, const sched::LatencyControl::Entry& entry,
                                      const DeviceWork& work, std::uint64_t now_ns) {
  const std::vector<sched::NodeInput>& nodes = nodes_on_[device];
  const std::vector<sched::WithTarget> slices = controls_[device].slices();
  const auto self = std::ranges::find(slices, entry.node, &sched::WithTarget::node);
  sched::LatencyStep step{.now = time_of(now_ns), .frozen = effective_[entry.node].frozen};
  const bool stopped = stands_still(device, entry.node);  // then nobody has to yield
  const auto is_own = [&](const DeviceWork::Program& program) {
    return sched::in_or_below(program.client->slice(), entry.path);
  };
  std::set<std::optional<std::string>> own_contexts;  // in which others may run beside
  for (const DeviceWork::Program& program : work.programs)
    if (is_own(program) && share_context(*program.client, *program.client, device))
      own_contexts.insert(program.client->context);
  bool others_work = false, yields_beside = false, yields_by_turns = false;
  step.can_pause = step.still = step.absent = step.no_others = true;
  for (const DeviceWork::Program& program : work.programs) {
    step.who = step.who * 31 + static_cast<std::uint64_t>(program.client->identity().pid);
    if (is_own(program)) {
      step.active |= program.lately && !stopped;
      step.absent = false;
      continue;
    }
    step.no_others = false;
    others_work |= program.works;
    step.can_pause &= !program.works || sched::can_be_paused(nodes, program.client->node, *self, slices);
    step.still &= program.still;
    if (sched::yields(nodes, program.client->node, *self, slices)) {
      const bool beside = own_contexts.contains(program.client->context);
      (beside ? yields_beside : yields_by_turns) = true;
      step.leaving |= beside && program.leaving;
    }
    step.launches += static_cast<double>(program.launches);
  }
  const bool quiet_before = std::exchange(seen_[device].quiet[entry.path], !others_work);
  step.quiet = quiet_before && !others_work;
  if (yields_by_turns && options_.time_slices)
    step.last[static_cast<std::size_t>(sched::Dial::turns)] = sched::kTurnRungs;
  if (yields_beside) {
    step.last[static_cast<std::size_t>(sched::Dial::level)] = 1;
    step.last[static_cast<std::size_t>(sched::Dial::kept)] = sched::kTurnRungs;  // bounded by what there is
  }
  return step;
}

/// Bursts of a slice without a target, while programs of that slice alone had work.
void Scheduler::learn_alone(std::size_t device, const DeviceWork& work, std::uint64_t now_ns) {
  std::string path;
  bool one = true;
  for (const DeviceWork::Program& program : work.programs) {
    if (!program.works) continue;
    one &= path.empty() || path == program.client->slice();
    path = program.client->slice();
  }
  if (!one) path.clear();
  const std::string before = std::exchange(seen_[device].alone, path);
  if (path.empty() || path == "/" || controls_[device].find(path) != nullptr) return;
  const sched::LatencyHistogram bursts = new_bursts(device, path);
  if (before == path && bursts.count() > 0) controls_[device].saw_alone(path, bursts, time_of(now_ns));
}

/// True if a dial was turned.
bool Scheduler::step_latency(std::uint64_t now_ns) {
  if (now_ns < stepped_ns_ + kStepNs) return false;
  const std::uint64_t passed_ns = now_ns - std::exchange(stepped_ns_, now_ns);
  bool turned = false;
  for (Client& client : clients_) read_latencies(client, now_ns, true);
  for (std::size_t device = 0; device < controls_.size(); ++device) {
    sched::LatencyControl& control = controls_[device];
    const DeviceWork work = work_on(device, now_ns);
    learn_alone(device, work, now_ns);
    if (control.entries().empty()) continue;
    std::vector<sched::LatencyHistogram> bursts;
    std::vector<sched::LatencyStep> steps;
    for (const sched::LatencyControl::Entry& entry : control.entries()) {
      bursts.push_back(new_bursts(device, entry.path));
      steps.push_back(step_of(device, entry, work, now_ns));
      steps.back().active |= bursts.back().count() > 0;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].bursts = &bursts[i];
      // By turns all are apart in any case; and what a dial does is seen once it is left alone.
      if (!grants_[device].time_sliced() && !steps[i].quiet && !control.entries()[i].steer.moving() &&
          !stands_still(device, control.entries()[i].node))
        record_isolation(device, control.entries()[i].path, work.others_of(control.entries()[i].path), now_ns,
                         passed_ns);
    }
    std::vector<sched::NodeInput> nodes = fixed_nodes(device);
    sched::fit_reserves(nodes, sched::CapSM{sms_[device]});
    turned |= control.step(nodes, steps);
  }
  fresh_.clear();
  return turned || would_isolate_otherwise();
}

/// Programs came to the slice or left it.
void Scheduler::note_others(std::string_view slice, std::uint64_t now_ns) {
  sched::for_each_up(slice, [&](std::string_view path) { same_since_.insert_or_assign(std::string(path), now_ns); });
}

/// Of the slice `wanted`, and of those that take turns with it: one of each context, and none above or below another.
/// Empty: `wanted` has no target.
std::vector<sched::LatencyPromise> Scheduler::promises(std::size_t device, const sched::SliceTree& tree,
                                                       const std::string& wanted) const {
  std::vector<sched::LatencyPromise> all;
  std::vector<std::string> contexts;
  const auto add = [&](const std::string& path) {
    const sched::Alone* alone = controls_[device].alone(path);
    const auto target = parse_latency(tree.find(path)->latency);
    const bool known = alone != nullptr && alone->known();
    if (!target || !target->any() || (!known && path != wanted)) return;
    const std::string top = time_sliced_ ? path : sched::topmost_isolated(tree.slices(), path);
    const auto meets = [&](const std::string& other) {
      return sched::in_or_below(top, other) || sched::in_or_below(other, top);
    };
    if (!all.empty() && (top.empty() || std::ranges::any_of(contexts, meets))) return;
    bool same = true;
    sched::for_each_up(path, [&](std::string_view above) {
      const sched::Slice* now = tree_.find(above);
      same &= now != nullptr && sched::same_but_target(*now, *tree.find(above));
    });
    const auto since = same_since_.find(path);
    const std::uint64_t since_ns = since == same_since_.end() ? 0 : since->second;
    all.push_back({.path = path,
                   .target = *target,
                   .alone = known ? alone->p99() : std::chrono::nanoseconds{},
                   .alone_at_least = same && known ? alone->least_since(time_of(since_ns)) : std::chrono::nanoseconds{},
                   .by_turns = !top.empty()});
    contexts.push_back(top);
  };
  add(wanted);
  if (all.empty()) return all;
  for (const auto& [path, slice] : tree.slices())
    if (path != wanted) add(path);
  return all;
}

sched::Admission Scheduler::admits_target(const sched::SliceTree& tree, const std::string& path) const {
  sched::Admission on_all;
  bool refused_on_all = true;
  const bool used = std::ranges::any_of(controls_, [&](const sched::LatencyControl& control) {
    const sched::Alone* alone = control.alone(path);
    return alone != nullptr && alone->known();
  });
  for (std::size_t device = 0; device < controls_.size(); ++device) {
    if (!sched::sees(tree.slices(), path, size_of(devices_[device]))) continue;
    const auto known = promises(device, tree, path);
    if (known.empty() || (used && known.front().alone.count() == 0)) continue;
    const auto on_one = sched::admit(known.front(), std::span(known).subspan(1));
    refused_on_all &= !on_one.refused.empty();
    const std::string gpu = controls_.size() > 1 ? "GPU " + std::to_string(devices_[device].index) + ": " : "";
    if (!on_one.refused.empty()) on_all.refused = on_one.refused;
    if (!on_one.refused.empty()) on_all.notes.push_back(gpu + "latency " + on_one.refused);
    for (const std::string& note : on_one.notes) on_all.notes.push_back(gpu + note);
  }
  if (!refused_on_all) on_all.refused.clear();
  return on_all;
}

std::vector<Scheduler::TargetSeen> Scheduler::targets() const {
  std::vector<TargetSeen> seen;
  for (std::size_t device = 0; device < controls_.size(); ++device)
    for (const sched::LatencyControl::Entry& entry : controls_[device].entries())
      seen.push_back({entry.path, device, &entry.steer});
  return seen;
}

std::optional<std::string> Scheduler::latency_now(const std::string& slice) const {
  std::optional<std::string> text;
  for (std::size_t device = 0; device < controls_.size(); ++device) {
    const sched::Steer* steer = controls_[device].find(slice);
    if (steer == nullptr || (controls_.size() > 1 && steer->state() == sched::Steer::State::resting && text)) continue;
    const std::string line = (controls_.size() > 1 ? "GPU " + std::to_string(devices_[device].index) + ": " : "") +
                             sched::words(*steer, sms_[device]);
    text = text ? *text + "; " + line : line;
  }
  if (!text)
    if (const sched::Slice* settings = tree_.find(slice); settings != nullptr && settings->latency != "none")
      text = "a policy for jobs rules above it, so nobody yields";
  return text;
}

}  // namespace gpuctl::daemon
