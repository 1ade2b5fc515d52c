// Quotas of slices: what their programs use is counted on each GPU, and who has used up a quota has no SMs until the
// next period, as if frozen.
#include <algorithm>
#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

namespace {

/// "35 ms", and "1 ms" of anything less.
std::string in_ms(std::chrono::nanoseconds time) {
  return std::to_string(std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(time).count())) + " ms";
}

}  // namespace

/// Goes by what the tree says. A slice that stays, with a quota, keeps what it has left.
void Scheduler::renew_quotas(std::uint64_t now_ns) {
  quota_of_.clear();
  std::erase_if(throttled_before_, [&](const auto& entry) { return tree_.find(entry.first) == nullptr; });
  const bool any =
      std::ranges::any_of(tree_.slices(), [](const auto& entry) { return sched::has_quota(entry.second); });
  for (std::size_t device = 0; device < quotas_.size(); ++device) {
    std::map<std::string, Quota> wanted;
    for (const auto& [path, slice] : tree_on(device).slices())
      if (const Quota quota = sched::quota_of(slice); quota.any()) wanted[path] = quota;
    auto& quotas = quotas_[device];
    std::erase_if(quotas, [&](const auto& entry) {
      if (wanted.contains(entry.first)) return false;
      if (tree_.find(entry.first) != nullptr)
        throttled_before_[entry.first] += entry.second.bandwidth.seen(instant(now_ns));
      return true;
    });
    if (!any) continue;
    std::vector<QuotaUse*>& of_node = quota_of_.emplace_back();
    for (const auto& [path, slice] : tree_.slices()) {
      const auto quota = wanted.find(path);
      of_node.push_back(quota == wanted.end() ? nullptr : &quotas[path]);
      if (of_node.back() != nullptr) of_node.back()->bandwidth.set(quota->second, instant(now_ns));
    }
  }
}

/// Charges the slices of a client for what it has used of a device since the last call. `sms`: that it uses now.
void Scheduler::use_quotas(const Client& client, Client::Slot& slot, double sms, std::uint64_t now_ns) {
  const double used_sm_s = slot.meter.sm_s() - std::exchange(slot.metered_sm_s, slot.meter.sm_s());
  if (quota_of_.empty()) return;
  const auto device = static_cast<std::size_t>(slot.device);
  const std::chrono::nanoseconds used(static_cast<std::int64_t>(used_sm_s * 1e9 / sms_[device]));
  sched::each_up_to_root(nodes_, client.node, [&](std::size_t n) {
    QuotaUse* const quota = quota_of_[device][n];
    if (quota == nullptr) return;
    quota->bandwidth.use(used, instant(now_ns));
    quota->rate += sms / sms_[device];
  });
}

/// True if a slice is throttled on a device, or is so no more.
bool Scheduler::step_quotas(std::uint64_t now_ns) {
  bool changed = false;
  for (auto& quotas : quotas_)
    for (auto& [path, quota] : quotas) changed |= quota.bandwidth.step(instant(now_ns));
  return changed;
}

/// Those that are throttled may have nothing, nor may what is below them. What they reserve is for others.
void Scheduler::throttle(std::size_t device, std::vector<sched::NodeInput>& nodes) const {
  for (std::size_t n = 0; n < nodes.size(); ++n) {  // parents first
    if (!is_throttled(device, n)) continue;
    nodes[n].max = sched::CapSM{};
    if (nodes[n].parent >= 0) nodes[n].reserve = sched::CapSM{};
  }
}

bool Scheduler::is_throttled(std::size_t device, std::size_t node) const {
  bool throttled = false;
  if (!quota_of_.empty())
    sched::each_up_to_root(nodes_, node, [&](std::size_t n) {
      const QuotaUse* const quota = quota_of_[device][n];
      throttled |= quota != nullptr && quota->bandwidth.throttled();
    });
  return throttled;
}

bool Scheduler::stands_still(std::size_t device, std::size_t node) const {
  return effective_[node].frozen || is_throttled(device, node);
}

void Scheduler::lift_quotas(std::uint64_t now_ns) {
  for (Client& client : clients_)
    for (std::size_t i = 0; i < client.slots().size(); ++i) {
      const Client::Slot& slot = client.slots()[i];
      if (slot.device < 0 || slot.written > 0) continue;
      const auto device = static_cast<std::size_t>(slot.device);
      if (!is_throttled(device, client.node)) continue;
      const std::uint32_t most = std::min(effective_on(device)[client.node].max.count, sms_[device]);
      if (most > 0) client.write_grant(i, slot.most_of(most), 0, now_ns);
    }
}

std::uint64_t Scheduler::quota_ns() const {
  std::uint64_t next_ns = UINT64_MAX;
  for (const auto& quotas : quotas_)
    for (const auto& [path, quota] : quotas)
      if (const auto next = quota.bandwidth.next(quota.rate))
        next_ns = std::min(next_ns, static_cast<std::uint64_t>(next->count()));
  return next_ns;
}

sched::Bandwidth::Seen Scheduler::throttled(const std::string& slice, std::uint64_t now_ns) const {
  sched::Bandwidth::Seen all;
  if (const auto before = throttled_before_.find(slice); before != throttled_before_.end()) all = before->second;
  for (const auto& quotas : quotas_)
    if (const auto quota = quotas.find(slice); quota != quotas.end())
      all += quota->second.bandwidth.seen(instant(now_ns));
  return all;
}

std::int64_t Scheduler::throttled_times(const std::string& slice, std::size_t device, std::uint64_t now_ns) const {
  const auto quota = quotas_[device].find(slice);
  return quota == quotas_[device].end() ? 0 : quota->second.bandwidth.seen(instant(now_ns)).times;
}

std::optional<std::string> Scheduler::quota_now(const std::string& slice, std::uint64_t now_ns) const {
  std::string text;
  for (std::size_t device = 0; device < quotas_.size(); ++device)
    for (const auto& [path, quota] : quotas_[device]) {
      if (!quota.bandwidth.throttled() || !sched::in_or_below(slice, path)) continue;
      const auto wait = std::max(*quota.bandwidth.next(0) - instant(now_ns), std::chrono::nanoseconds{});
      text += (text.empty() ? "quota" : "; quota") + (path == slice ? "" : " of " + path) + " used up on GPU " +
              std::to_string(devices_[device].index) + ", goes on in " + in_ms(wait);
    }
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace gpuctl::daemon
