#include "sched/apply_change.h"

#include "sched/policy.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

namespace {

SliceError invalid(std::string field, std::string reason) {
  return {.code = SliceError::Code::invalid_value, .path = {}, .field = std::move(field), .reason = std::move(reason)};
}

bool outside(const std::optional<std::int64_t>& value, std::int64_t low, std::int64_t high) {
  return value && (*value < low || *value > high);
}

SliceError not_between(std::string field, std::int64_t low, std::int64_t high, std::int64_t got) {
  return invalid(std::move(field),
                 "must be " + std::to_string(low) + " to " + std::to_string(high) + ", not " + std::to_string(got));
}

constexpr std::int64_t kSmsMax = kUnlimitedCapSM.count - 1;
constexpr std::size_t kMaxPolicyLength = 200;  // a name and its options
constexpr std::int64_t kIdMax = 0xfffffffe;    // 2^32 - 1 means "nobody" to the kernel

}  // namespace

SliceResult<Slice> apply_change(const Slice& slice, const SliceChange& change) {
  Slice result = slice;
  if (outside(change.reserve, 0, kSmsMax)) return not_between("reserve", 0, kSmsMax, *change.reserve);
  if (change.reserve) result.reserve = CapSM{static_cast<std::uint32_t>(*change.reserve)};

  if (change.reserve_mode) {
    const std::optional<ReserveMode> mode = reserve_mode(*change.reserve_mode);
    if (!mode) return invalid("reserve_mode", "must be " + std::string(kReserveModes));
    result.reserve_mode = *mode;
  }
  if (outside(change.reserve_hold_ms, kReserveHoldMin.count(), kReserveHoldMax.count()))
    return not_between("reserve_hold_ms", kReserveHoldMin.count(), kReserveHoldMax.count(), *change.reserve_hold_ms);
  if (change.reserve_hold_ms) result.reserve_hold = std::chrono::milliseconds(*change.reserve_hold_ms);

  if (change.max && change.max_unlimited) return invalid("max", "given together with max_unlimited");
  if (outside(change.max, 0, kSmsMax)) return not_between("max", 0, kSmsMax, *change.max);
  if (change.max) result.max = CapSM{static_cast<std::uint32_t>(*change.max)};
  if (change.max_unlimited) result.max = kUnlimitedCapSM;

  if (outside(change.weight, kWeightMin, kWeightMax))
    return not_between("weight", kWeightMin, kWeightMax, *change.weight);
  if (change.weight) result.weight = static_cast<std::uint32_t>(*change.weight);

  if (outside(change.priority, kPriorityMin, kPriorityMax))
    return not_between("priority", kPriorityMin, kPriorityMax, *change.priority);
  if (change.priority) result.priority = static_cast<std::int32_t>(*change.priority);

  if (change.memory_max && change.memory_unlimited)
    return invalid("memory_max", "given together with memory_unlimited");
  if (change.memory_max && *change.memory_max < 0) return invalid("memory_max", "must be bytes, 0 or more");
  if (change.memory_max) result.memory_max = static_cast<std::uint64_t>(*change.memory_max);
  if (change.memory_unlimited) result.memory_max.reset();

  if (change.policy) {
    result.policy = find_policy(*change.policy);
    result.job_policy.clear();
    if (result.policy == nullptr) {
      if (change.policy->size() > kMaxPolicyLength) return invalid("policy", "longer than 200 characters");
      if (auto sound = check_slice_policy(*change.policy); !sound) return invalid("policy", sound.error().message);
      result.policy = &policies().front();
      result.job_policy = *change.policy;
    }
  }

  if (outside(change.owner_uid, 0, kIdMax)) return not_between("owner_uid", 0, kIdMax, *change.owner_uid);
  if (change.owner_uid) result.owner_uid = static_cast<std::uint32_t>(*change.owner_uid);
  if (outside(change.owner_gid, -1, kIdMax)) return not_between("owner_gid", -1, kIdMax, *change.owner_gid);
  if (change.owner_gid) result.owner_gid = static_cast<std::uint32_t>(*change.owner_gid);  // -1 becomes kNobody

  if (result.reserve > result.max)
    return invalid(change.reserve ? "reserve" : "max", "reserve " + std::to_string(result.reserve.count) +
                                                           " is above max " + std::to_string(result.max.count));
  return result;
}

}  // namespace gpuctl::sched
