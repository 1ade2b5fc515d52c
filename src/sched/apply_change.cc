#include "sched/apply_change.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/former_mode.h"
#include "base/latency_text.h"
#include "sched/policy.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

namespace {

constexpr std::size_t kMaxPolicyLength = 200;  // a name and its options

static_assert(kUnlimitedCapSM.count == kSmsGreatest + 1);

SliceError invalid(std::string_view field, std::string reason) {
  return {
      .code = SliceError::Code::invalid_value, .path = {}, .field = std::string(field), .reason = std::move(reason)};
}

/// What single GPUs have, after the change. A number by itself is for every GPU.
PerGpu changed(const PerGpu& now, const std::optional<std::string>& change, bool number, AmountOf of) {
  return change ? parse_per_gpu(*change, of).value() : number ? PerGpu() : now;
}

/// The policy that divides SMs among children, if the text names one; else null. A policy for jobs is kept as text.
const Policy* dividing_policy(std::string_view text) {
  const Policy* policy = find_policy(text);
  return policy != nullptr && policy->divide != nullptr ? policy : nullptr;
}

std::string what_is_wrong(const SliceSetting& setting, const std::string& text) {
  if (setting.kind == SettingKind::choice) {
    if (std::ranges::find(setting.choices, text) != setting.choices.end()) return {};
    if (is_former_mode(setting, text)) return std::string(kFormerReserveModeSays);
    std::string choices;
    for (const std::string_view choice : setting.choices)
      choices.append(choices.empty() ? "" : choice == setting.choices.back() ? " or " : ", ").append(choice);
    return "must be " + choices;
  }
  if (setting.is_per_gpu())
    return parse_per_gpu(text, setting.amount_of()) ? "" : "must be " + std::string(per_gpu_form(setting.amount_of()));
  if (setting.kind == SettingKind::join) return parse_join(text) ? "" : "must be " + std::string(kJoinForm);
  if (setting.kind == SettingKind::devices) return parse_devices(text) ? "" : "must be " + std::string(kDevicesForm);
  if (setting.kind == SettingKind::latency) return parse_latency(text) ? "" : "must be " + std::string(kLatencyForm);
  if (setting.kind == SettingKind::quota) return is_quota(text) ? "" : "must be " + std::string(kQuotaForm);
  if (setting.kind == SettingKind::burst) return is_burst(text) ? "" : "must be " + std::string(kBurstForm);
  if (dividing_policy(text) != nullptr) return {};
  if (text.size() > kMaxPolicyLength) return "longer than " + std::to_string(kMaxPolicyLength) + " characters";
  const auto sound = check_slice_policy(text);
  return sound ? std::string() : sound.error().message;
}

/// What is wrong with the value of one setting by itself; empty if nothing is.
std::string what_is_wrong(const SliceSetting& setting, const SliceChange& change) {
  if (setting.text != nullptr) {
    const std::optional<std::string>& text = change.*setting.text;
    return text ? what_is_wrong(setting, *text) : std::string();
  }
  const std::optional<std::int64_t>& number = change.*setting.number;
  if (!number) return {};
  if (setting.lifted != nullptr && change.*setting.lifted) return "given together with " + std::string(setting.lift);
  if (*number >= setting.least && *number <= setting.greatest) return {};
  if (setting.kind == SettingKind::bytes) return "must be bytes, " + std::to_string(setting.least) + " or more";
  return "must be " + std::to_string(setting.least) + " to " + std::to_string(setting.greatest) + ", not " +
         std::to_string(*number);
}

/// Burst and quota, as text, where the burst is more than the quota's time, on some GPU that they name or on those that
/// they do not.
std::optional<std::pair<std::string, std::string>> excess_of_burst(const Slice& slice) {
  std::vector<std::string> gpus = gpus_of_quota(slice.quota), more = gpus_of_quota(slice.burst);
  gpus.insert(gpus.end(), more.begin(), more.end());
  gpus.emplace_back();
  for (const std::string& gpu : gpus) {
    std::int64_t index = -1;
    std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
    const std::string quota = quota_on(slice.quota, index, gpu), burst = quota_on(slice.burst, index, gpu);
    const Quota there = parse_quota(quota).value();
    if (there.any() && parse_burst(burst).value() > there.time) return std::pair(burst, quota);
  }
  return std::nullopt;
}

}  // namespace

SliceResult<Slice> apply_change(const Slice& slice, const SliceChange& change) {
  for (const SliceSetting& setting : kSliceSettings)
    if (std::string reason = what_is_wrong(setting, change); !reason.empty())
      return invalid(setting.name, std::move(reason));

  Slice result = slice;
  if (change.reserve) result.reserve = CapSM{static_cast<std::uint32_t>(*change.reserve)};
  if (change.reserve_mode) result.reserve_mode = *reserve_mode(*change.reserve_mode);
  if (change.reserve_hold_ms) result.reserve_hold = std::chrono::milliseconds(*change.reserve_hold_ms);
  if (change.max) result.max = CapSM{static_cast<std::uint32_t>(*change.max)};
  if (change.max_unlimited) result.max = kUnlimitedCapSM;
  if (change.quota) result.quota = *change.quota;
  if (change.burst) result.burst = *change.burst;
  if (change.weight) result.weight = static_cast<std::uint32_t>(*change.weight);
  if (change.priority) result.priority = static_cast<std::int32_t>(*change.priority);
  if (change.isolation) {
    result.isolated_by_auto = *change.isolation == kIsolations.front();
    if (!result.isolated_by_auto) result.isolated = *change.isolation == isolation_name(true);
  }
  if (change.memory_min) result.memory_min = static_cast<std::uint64_t>(*change.memory_min);
  if (change.memory_max) result.memory_max = static_cast<std::uint64_t>(*change.memory_max);
  if (change.memory_unlimited) result.memory_max.reset();
  if (change.memory_high) result.memory_high = static_cast<std::uint64_t>(*change.memory_high);
  if (change.memory_high_unlimited) result.memory_high.reset();
  if (change.latency) result.latency = *change.latency;
  if (change.policy) {
    const Policy* dividing = dividing_policy(*change.policy);
    result.policy = dividing != nullptr ? dividing : &policies().front();
    result.job_policy = dividing != nullptr ? std::string() : *change.policy;
  }
  if (change.frozen) result.swapped = *change.frozen == kFrozen[2], result.frozen = *change.frozen != kFrozen[0];
  result.reserve_per_gpu =
      changed(slice.reserve_per_gpu, change.reserve_per_gpu, change.reserve.has_value(), AmountOf::sms);
  result.max_per_gpu =
      changed(slice.max_per_gpu, change.max_per_gpu, change.max || change.max_unlimited, AmountOf::sms);
  result.memory_min_per_gpu =
      changed(slice.memory_min_per_gpu, change.memory_min_per_gpu, change.memory_min.has_value(), AmountOf::bytes);
  result.memory_max_per_gpu = changed(slice.memory_max_per_gpu, change.memory_max_per_gpu,
                                      change.memory_max || change.memory_unlimited, AmountOf::bytes);
  result.memory_high_per_gpu = changed(slice.memory_high_per_gpu, change.memory_high_per_gpu,
                                       change.memory_high || change.memory_high_unlimited, AmountOf::bytes);
  if (change.owner_uid) result.owner_uid = static_cast<std::uint32_t>(*change.owner_uid);
  if (change.owner_gid) result.owner_gid = static_cast<std::uint32_t>(*change.owner_gid);  // -1 becomes kNobody

  if (change.join) result.join = parse_join(*change.join).value();
  if (change.devices) result.devices = parse_devices(*change.devices).value();

  if (std::ranges::any_of(result.reserve_per_gpu.list(), &PerGpu::Amount::lifted, &PerGpu::One::amount))
    return invalid("reserve_per_gpu", "a reserve has an end: give a number of SMs or a part of them");
  if (std::ranges::any_of(result.memory_min_per_gpu.list(), &PerGpu::Amount::lifted, &PerGpu::One::amount))
    return invalid("memory_min_per_gpu", "what is kept has an end: give a size or a part of the memory");
  if (const auto excess = excess_of_burst(result)) {
    const auto& [burst, quota] = *excess;
    return change.burst ? invalid("burst", burst + " is more than the time of the quota " + quota)
                        : invalid("quota", "a burst of " + burst + " is more than the time of " + quota);
  }
  // Where amounts differ by GPU the tree compares what they are there.
  if (result.reserve > result.max && result.reserve_per_gpu.empty() && result.max_per_gpu.empty())
    return invalid(change.reserve ? "reserve" : "max", "reserve " + std::to_string(result.reserve.count) +
                                                           " is above max " + std::to_string(result.max.count));
  return result;
}

}  // namespace gpuctl::sched
