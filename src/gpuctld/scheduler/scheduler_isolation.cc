// Isolation "auto": what programs with a target take beside others is recorded, and a slice in which no program is goes
// by that. A program's isolation is fixed at its start, and all programs of a slice have the same.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "gpuctld/scheduler/scheduler.h"
#include "sched/slices.h"

namespace gpuctl::daemon {

bool Scheduler::has_programs(const std::string& slice) const {
  return std::ranges::any_of(clients_, [&](const Client& client) { return sched::in_or_below(client.slice(), slice); });
}

sched::IsolationEvidence Scheduler::isolation_evidence(const std::string& slice) const {
  sched::IsolationEvidence evidence;
  for (const sched::LatencyControl& control : controls_)
    if (const sched::Steer* steer = control.find(slice)) {
      evidence.has_target = true;
      evidence.at_most = std::max(evidence.at_most, steer->at_most());
    }
  if (!evidence.has_target) return evidence;
  if (const auto programs = isolation_record_.of(slice); !programs.empty()) evidence.measured = programs[0].measured;
  evidence.exclusive = std::ranges::any_of(devices_, &Gpu::exclusive);
  std::set<std::string> apart;
  for (const Client& client : clients_)
    if (client.isolated && !sched::in_or_below(client.slice(), slice))
      apart.insert(sched::topmost_isolated(tree_.slices(), client.slice()));
  evidence.others_isolated = apart.size();
  return evidence;
}

/// None: it stays as it is.
std::optional<bool> Scheduler::isolates_now(const std::string& slice, const sched::Slice& settings) const {
  if (!settings.isolated_by_auto || (settings.latency == "none" && !settings.isolated) || has_programs(slice))
    return std::nullopt;
  const bool isolated = sched::choose_isolation(isolation_evidence(slice)).isolated;
  return isolated == settings.isolated ? std::nullopt : std::optional(isolated);
}

bool Scheduler::would_isolate_otherwise() const {
  return std::ranges::any_of(tree_.slices(),
                             [this](const auto& slice) { return isolates_now(slice.first, slice.second).has_value(); });
}

void Scheduler::choose_isolation(std::uint64_t now_ns) {
  if (would_isolate_otherwise()) set_tree(tree_, now_ns);
}

/// True if a slice is isolated otherwise now.
bool Scheduler::isolate_by_record() {
  bool any = false;
  for (const auto& [path, settings] : tree_.slices())
    if (const auto isolated = isolates_now(path, settings)) tree_.isolate(path, *isolated), any = true;
  return any;
}

void Scheduler::isolate_as(const Client& first, std::uint64_t now_ns) {
  std::string chose;
  sched::for_each_up(first.slice(), [&](std::string_view path) {
    const sched::Slice* slice = tree_.find(path);
    if (chose.empty() && slice->isolated_by_auto && slice->latency != "none") chose = path;
  });
  if (chose.empty() || tree_.find(chose)->isolated == first.isolated) return;
  if (std::ranges::any_of(clients_, [&](const Client& client) {
        return &client != &first && !client.stands_in && sched::in_or_below(client.slice(), chose);
      }))
    return;
  sched::SliceTree tree = tree_;
  tree.isolate(chose, first.isolated);
  set_tree(std::move(tree), now_ns);
}

std::optional<std::string> Scheduler::isolation_now(const std::string& slice) const {
  const sched::Slice* settings = tree_.find(slice);
  if (settings == nullptr || !settings->isolated_by_auto) return std::nullopt;
  const sched::IsolationEvidence evidence = isolation_evidence(slice);
  if (!evidence.has_target && !settings->isolated) return std::nullopt;
  const sched::IsolationChoice choice = sched::choose_isolation(evidence);
  const std::string why = sched::words(choice, evidence);
  if (choice.isolated == settings->isolated || !has_programs(slice)) return why;
  return std::string(sched::isolation_name(settings->isolated)) + " until all its programs have ended, then " + why;
}

void Scheduler::note_start(const Client& client) {
  sched::for_each_up(client.slice(), [&](std::string_view path) { isolation_record_.started(path, client.program()); });
}

/// What the slice's programs took at this step, beside others.
void Scheduler::record_isolation(std::size_t device, const std::string& slice,
                                 const sched::IsolationRecord::Others& others, std::uint64_t now_ns,
                                 std::uint64_t passed_ns) {
  for (const Client& client : clients_) {
    const bool there = std::ranges::any_of(
        client.slots(), [&](const Client::Slot& slot) { return std::cmp_equal(slot.device, device); });
    if (!there || !sched::in_or_below(client.slice(), slice)) continue;
    const auto fresh = fresh_.find({&client, static_cast<int>(device)});
    isolation_record_.add(slice, client.program(), is_apart(client),
                          fresh == fresh_.end() ? sched::LatencyHistogram{} : fresh->second, others,
                          std::chrono::nanoseconds(passed_ns), std::chrono::nanoseconds(now_ns));
  }
}

void Scheduler::forget_client(const Client& client) {
  const auto is_its = [&](const auto& entry) { return entry.first.first == &client; };
  std::erase_if(fresh_, is_its);
  std::erase_if(launches_, is_its);
}

}  // namespace gpuctl::daemon
