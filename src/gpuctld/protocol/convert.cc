#include "gpuctld/protocol/convert.h"

#include "ipc/codec.h"
#include "ipc/interface.h"
#include "ipc/stub.h"
#include "sched/policy.h"

namespace gpuctl::daemon {

static_assert(sched::kUnlimitedCapSM.count == ipc::kUnlimited);

namespace {

std::optional<std::int64_t> limit(sched::CapSM max) {
  return max == sched::kUnlimitedCapSM ? std::nullopt : std::optional<std::int64_t>(max.count);
}

std::int64_t group(const sched::Slice& slice) {
  return slice.owner_gid == sched::kNobody ? ipc::kNoGroup : std::int64_t{slice.owner_gid};
}

std::optional<std::int64_t> bytes(const std::optional<std::uint64_t>& value) {
  return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
}

}  // namespace

ipc::SliceSettings to_settings(const sched::Slice& slice) {
  ipc::SliceSettings settings;
  settings.reserve = slice.reserve.count;
  settings.reserve_per_gpu = slice.reserve_per_gpu.text(AmountOf::sms);
  settings.reserve_mode = sched::mode_name(slice.reserve_mode);
  settings.reserve_hold_ms = slice.reserve_hold.count();
  settings.max = limit(slice.max);
  settings.max_unlimited = !settings.max;
  settings.max_per_gpu = slice.max_per_gpu.text(AmountOf::sms);
  settings.quota = slice.quota;
  settings.burst = slice.burst;
  settings.weight = slice.weight;
  settings.priority = slice.priority;
  settings.isolation = slice.isolated_by_auto ? kIsolations.front() : sched::isolation_name(slice.isolated);
  settings.memory_min = bytes(slice.memory_min);
  settings.memory_min_per_gpu = slice.memory_min_per_gpu.text(AmountOf::bytes);
  settings.memory_max = bytes(slice.memory_max);
  settings.memory_unlimited = !settings.memory_max;
  settings.memory_max_per_gpu = slice.memory_max_per_gpu.text(AmountOf::bytes);
  settings.memory_high = bytes(slice.memory_high);
  settings.memory_high_unlimited = !settings.memory_high;
  settings.memory_high_per_gpu = slice.memory_high_per_gpu.text(AmountOf::bytes);
  settings.latency = slice.latency;
  settings.policy = sched::policy_text(slice);
  settings.frozen = sched::frozen_name(slice.frozen, slice.swapped);
  settings.owner_uid = slice.owner_uid;
  settings.owner_gid = group(slice);
  settings.join = sched::join_text(slice);
  settings.devices = devices_text(slice.devices);
  return settings;
}

ipc::Slice describe(const std::string& path, const sched::SliceTree& tree, const sched::Effective& effective) {
  const sched::Slice& slice = *tree.find(path);
  const sched::Slice most = most_on_any(slice, tree.gpus());
  const ipc::SliceSettings settings = to_settings(slice);
  ipc::Slice result;
  result.path = path;
#define GPUCTL_ALWAYS(name, ...) result.name = *settings.name;
#define GPUCTL_LIMIT(name, ...) result.name = settings.name;
  GPUCTL_SLICE_SETTINGS(GPUCTL_ALWAYS, GPUCTL_ALWAYS, GPUCTL_LIMIT)
#undef GPUCTL_ALWAYS
#undef GPUCTL_LIMIT
  if (effective.priority != slice.priority) result.effective_priority = effective.priority;
  if (effective.max != most.max) result.effective_max = limit(effective.max);
  if (slice.isolated_by_auto || effective.isolated != slice.isolated)
    result.effective_isolation = sched::isolation_name(effective.isolated);
  if (effective.frozen != slice.frozen || effective.swapped != slice.swapped)
    result.effective_frozen = sched::frozen_name(effective.frozen, effective.swapped);
  if (effective.memory_max != most.memory_max) result.effective_memory_max = bytes(effective.memory_max);
  if (effective.memory_high != most.memory_high) result.effective_memory_high = bytes(effective.memory_high);
  if (effective.reserve != most.reserve) result.effective_reserve = effective.reserve.count;
  if (most.reserve > sched::CapSM{} && effective.reserve_mode != slice.reserve_mode)
    result.effective_reserve_mode = sched::mode_name(effective.reserve_mode);
  return result;
}

ipc::SliceOnGpu describe(std::int64_t device, const sched::Effective& effective) {
  return {.device = device,
          .reserve = effective.reserve.count,
          .max = limit(effective.max),
          .memory_max = bytes(effective.memory_max),
          .seen = effective.seen,
          .memory_high = bytes(effective.memory_high),
          .memory_min = bytes(effective.memory_min)};
}

std::vector<ipc::Pressure> describe(const sched::Pressure::Seen& pressure) {
  if (pressure.some.total.count() == 0) return {};
  const auto kind = [](const char* of, const sched::Pressure::Kind& seen) {
    constexpr double kPerCent = 100;
    return ipc::Pressure{of, kPerCent * seen.part[0], kPerCent * seen.part[1], kPerCent * seen.part[2],
                         std::chrono::duration_cast<std::chrono::microseconds>(seen.total).count()};
  };
  return {kind("some", pressure.some), kind("full", pressure.full)};
}

ipc::Fairness describe(const std::string& path, const sched::FairnessFigures& figures) {
  return {.slice = path,
          .seconds = sched::kFairnessSeconds,
          .programs = static_cast<std::int64_t>(figures.programs),
          .bursts = static_cast<std::int64_t>(figures.bursts),
          .antt = figures.applications.antt,
          .dntt = figures.applications.dntt,
          .stp = figures.applications.stp,
          .worst = figures.applications.worst,
          .launches = static_cast<std::int64_t>(figures.launches.count),
          .launch_antt = figures.launches.mean,
          .launch_dntt = figures.launches.deviation,
          .launch_worst = figures.launches.worst};
}

ipc::Reply to_reply(const sched::SliceError& error) {
  using Code = sched::SliceError::Code;
  const auto reply = [](std::string_view name, boost::json::object parameters) {
    return ipc::Reply{std::move(parameters), false, std::string(ipc::kInterface) + "." + std::string(name)};
  };
  const std::string path = ipc::to_utf8(error.path);
  switch (error.code) {
    case Code::no_such_slice:
      return reply("NoSuchSlice", {{"path", path}});
    case Code::slice_exists:
      return reply("SliceExists", {{"path", path}});
    case Code::slice_busy:
      return reply("SliceBusy", {{"path", path}, {"clients", error.clients}, {"children", error.children}});
    case Code::invalid_value:
      return reply("InvalidValue", {{"field", error.field}, {"reason", error.reason}});
    case Code::reserve_does_not_fit: {
      boost::json::object parameters{{"path", path}, {"asked", error.asked}, {"available", error.available}};
      if (error.gpu) parameters["gpu"] = *error.gpu;
      return reply("ReserveDoesNotFit", std::move(parameters));
    }
    case Code::permission_denied:
      return reply("PermissionDenied", {{"path", path}});
    case Code::no_slice:
      return reply("NoSlice", path.empty() ? boost::json::object{} : boost::json::object{{"path", path}});
  }
  return {};
}

}  // namespace gpuctl::daemon
