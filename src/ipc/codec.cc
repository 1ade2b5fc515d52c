// The codec of the types of io.gpuctl. Boost.Describe names the fields of a type, in the order of the interface. The
// C++ type of a field decides how it is written and read.
#include "ipc/codec.h"

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <string>

#include "ipc/message.h"

namespace gpuctl::ipc {

namespace json = boost::json;

// clang-format off
#define GPUCTL_FIELD(name, ...) name,
BOOST_DESCRIBE_STRUCT(Latency, (), (of, seconds, count, p50_us, p99_us, p999_us))
BOOST_DESCRIBE_STRUCT(SliceOnGpu, (), (
  device, reserve, max, memory_max, seen, memory_high, memory_min, same, granted, memory, memory_peak, max_refusals,
  driver_max, quota, burst))
BOOST_DESCRIBE_STRUCT(LatencyBucket, (), (to_us, count))
BOOST_DESCRIBE_STRUCT(SliceTotals, (), (sm_seconds, latency_seconds, latency))
BOOST_DESCRIBE_STRUCT(Pressure, (), (of, avg10, avg60, avg300, total_us))
BOOST_DESCRIBE_STRUCT(Slice, (), (path,
  GPUCTL_SLICE_SETTINGS(GPUCTL_FIELD, GPUCTL_FIELD, GPUCTL_FIELD) granted, demand, clients, faults,
  ended, ended_launches, ended_evictions, memory_waits, memory_refusals, energy_joules, latencies, pressure, totals,
  throttled, throttled_us, effective_reserve, effective_reserve_mode, effective_max, effective_priority,
  effective_isolation, effective_memory_max, effective_memory_high, effective_frozen, quota_now, latency_now,
  isolation_now, on_gpus))
#undef GPUCTL_FIELD
BOOST_DESCRIBE_STRUCT(MeasuredIsolation, (), (program, isolation, bursts, p99_us, others_per_s))
BOOST_DESCRIBE_STRUCT(Room, (), (device, reserved, reserve_free, memory_kept, memory_free, isolated_part))
BOOST_DESCRIBE_STRUCT(Advice, (), (isolation, why, in_force, measured, room, admitted, reason))
BOOST_DESCRIBE_STRUCT(Device, (), (index, name, uuid, kind, sms, memory_bytes, mode))
BOOST_DESCRIBE_STRUCT(ClientUsage, (), (device, granted, demand, holding, outstanding, launches, block_tasks,
  evictions, evict_us_last, evict_us_mean, evict_us_max, busy_us, memory, in_force, mode, common_sms,
  sms_told, mps_sms, priority_rank, priorities, time_slice, time_slice_us, channel_groups, latency_us_last,
  latency_us_log2, evict_us_log2, latency, swapped, launches_before, evictions_before))
BOOST_DESCRIBE_STRUCT(Client, (), (pid, uid, command, slice, state, isolated, swap_now, usage))
BOOST_DESCRIBE_STRUCT(Kernel, (), (name, module, form, reason, launches, registers, registers_original, per_sm,
  block_task_ns))
BOOST_DESCRIBE_STRUCT(KernelPoint, (), (sms, block_task_us))
BOOST_DESCRIBE_STRUCT(KernelDurations, (), (name, module, launches, predicted_us, observed_us, error, evict_us, curve,
  uid, key))
BOOST_DESCRIBE_STRUCT(Mps, (), (slice, state, programs))
BOOST_DESCRIBE_STRUCT(Status, (), (version, devices, slices, clients, uptime_s, notes, faults, config, mps_directory,
                                   mandatory, mps))
BOOST_DESCRIBE_STRUCT(WantedSlice, (), (path, settings))
BOOST_DESCRIBE_STRUCT(SliceDifference, (), (path, before, after, clients))
BOOST_DESCRIBE_STRUCT(EndedClient, (), (pid, command, slice, mps, signals, ended))
BOOST_DESCRIBE_STRUCT(Event, (), (number, time_us, kind, slice, uid, pid, command, text))
BOOST_DESCRIBE_STRUCT(UsageEntry, (), (slice, uid, gpu, device, sm_seconds, work_seconds, waited_seconds,
  memory_byte_seconds, joules, launches, bursts, evictions))
BOOST_DESCRIBE_STRUCT(Fairness, (), (slice, seconds, programs, bursts, antt, dntt, stp, worst, launches, launch_antt,
  launch_dntt, launch_worst))
BOOST_DESCRIBE_STRUCT(Snapshot, (), (time_ns, devices, slices, clients, fairness))
BOOST_DESCRIBE_STRUCT(Launch, (), (pid, slice, kernel, device, priority, weight, issued_ns, done_ns, alone_us,
  block_task_us, capsm, evictions, evict_us, module, key, blocks, threads, shared_bytes, input_bytes, sms, ran_us,
  original))
// clang-format on

namespace {

/// The least value of a field. A negative size, count or instant is the peer's mistake.
std::int64_t least(std::string_view name) {
  if (name == "priority" || name == "effective_priority") return std::numeric_limits<std::int64_t>::min();
  if (name == "owner_gid") return kNoGroup;
  return name == "weight" || name == "capsm" ? 1 : 0;
}

json::value value_of(const std::string& text) {
  return json::value(to_utf8(text));
}
json::value value_of(std::int64_t integer) {
  return integer;
}
json::value value_of(double number) {
  return number;
}
json::value value_of(bool boolean) {
  return boolean;
}
json::value value_of(const SliceSettings& settings) {
  return to_json(settings);
}
json::value value_of(const SliceTotals& totals) {
  return to_json(totals);
}
template <class T>
json::value value_of(const std::vector<T>& list) {
  json::array array;
  array.reserve(list.size());
  if constexpr (boost::describe::has_describe_members<T>::value)
    for (const T& item : list) array.emplace_back(to_json(item));
  else
    for (const T& item : list) array.emplace_back(value_of(item));
  return array;
}

template <class T>
void put(json::object& object, std::string_view name, const T& value) {
  object.emplace(json::string_view(name.data(), name.size()), value_of(value));
}
template <class T>
void put(json::object& object, std::string_view name, const std::optional<T>& value) {
  if (value) put(object, name, *value);
}

void get(Fields& fields, std::string_view name, std::string& text) {
  text = fields.text(name);
}
void get(Fields& fields, std::string_view name, std::int64_t& integer) {
  integer = fields.integer(name, least(name));
}
void get(Fields& fields, std::string_view name, double& number) {
  number = fields.number(name);
}
void get(Fields& fields, std::string_view name, bool& boolean) {
  boolean = fields.boolean(name);
}
void get(Fields& fields, std::string_view name, std::vector<std::string>& list) {
  list = fields.texts(name);
}
void get(Fields& fields, std::string_view name, std::vector<std::int64_t>& list) {
  list = fields.integers(name);
}
void get(Fields& fields, std::string_view name, std::optional<std::int64_t>& integer) {
  integer = fields.maybe_integer(name, least(name));
}
void get(Fields& fields, std::string_view name, std::optional<double>& number) {
  if (fields.has(name)) number = fields.number(name);
}
void get(Fields& fields, std::string_view name, std::optional<bool>& boolean) {
  boolean = fields.maybe_boolean(name);
}
void get(Fields& fields, std::string_view name, std::optional<std::string>& text) {
  text = fields.maybe_text(name);
}
void get(Fields& fields, std::string_view name, SliceSettings& settings) {
  Fields nested = fields.object(name);
  read(nested, settings);
}
void get(Fields& fields, std::string_view name, std::optional<SliceSettings>& settings) {
  if (fields.has(name)) get(fields, name, settings.emplace());
}
void get(Fields& fields, std::string_view name, std::optional<SliceTotals>& totals) {
  if (!fields.has(name)) return;
  Fields nested = fields.object(name);
  read(nested, totals.emplace());
}
template <class T>
void get(Fields& fields, std::string_view name, std::vector<T>& list) {
  list = read_list<T>(fields, name);
}
template <class T>
void get(Fields& fields, std::string_view name, std::optional<std::vector<T>>& list) {
  if (fields.has(name)) list = read_list<T>(fields, name);
}

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

template <class T>
json::object write_members(const T& value) {
  json::object object;
  object.reserve(boost::mp11::mp_size<Members<T>>::value);
  boost::mp11::mp_for_each<Members<T>>([&](auto member) { put(object, member.name, value.*member.pointer); });
  return object;
}

template <class T>
void read_members(Fields& fields, T& value) {
  boost::mp11::mp_for_each<Members<T>>([&](auto member) { get(fields, member.name, value.*member.pointer); });
}

}  // namespace

#define GPUCTL_CODEC(Type)                  \
  json::object to_json(const Type& value) { \
    return write_members(value);            \
  }                                         \
  void read(Fields& fields, Type& value) {  \
    read_members(fields, value);            \
  }
GPUCTL_CODEC(Slice)
GPUCTL_CODEC(Device)
GPUCTL_CODEC(Latency)
GPUCTL_CODEC(LatencyBucket)
GPUCTL_CODEC(SliceTotals)
GPUCTL_CODEC(Pressure)
GPUCTL_CODEC(SliceOnGpu)
GPUCTL_CODEC(ClientUsage)
GPUCTL_CODEC(Client)
GPUCTL_CODEC(Kernel)
GPUCTL_CODEC(KernelPoint)
GPUCTL_CODEC(KernelDurations)
GPUCTL_CODEC(Mps)
GPUCTL_CODEC(Status)
GPUCTL_CODEC(SliceDifference)
GPUCTL_CODEC(EndedClient)
GPUCTL_CODEC(Event)
GPUCTL_CODEC(UsageEntry)
GPUCTL_CODEC(Fairness)
GPUCTL_CODEC(MeasuredIsolation)
GPUCTL_CODEC(Room)
GPUCTL_CODEC(Advice)
GPUCTL_CODEC(Snapshot)
GPUCTL_CODEC(Launch)
#undef GPUCTL_CODEC

json::object to_json(const WantedSlice& slice) {
  return write_members(slice);
}
/// Only calls have it.
void read(Fields& fields, WantedSlice& slice) {
  slice.path = fields.text("path");
  Fields settings = fields.object("settings");
  read(settings, slice.settings);
  settings.refuse_unknown();
  fields.refuse_unknown();
}

json::object to_json(const SliceSettings& settings) {
  json::object object;
  object.reserve(kSliceSettings.size());
  for (const SliceSetting& setting : kSliceSettings) {
    if (setting.number != nullptr) put(object, setting.name, settings.*setting.number);
    if (setting.text != nullptr) put(object, setting.name, settings.*setting.text);
    if (setting.lifted != nullptr && settings.*setting.lifted) put(object, setting.lift, true);
  }
  return object;
}

void read(Fields& fields, SliceSettings& settings) {
  for (const SliceSetting& setting : kSliceSettings) {
    const std::string_view name = setting.name;
    if (setting.number != nullptr)
      settings.*setting.number = fields.maybe_integer(name, std::min<std::int64_t>(least(name), 0));
    if (setting.text != nullptr) settings.*setting.text = fields.maybe_text(name);
    if (setting.lifted != nullptr) settings.*setting.lifted = fields.maybe_boolean(setting.lift).value_or(false);
  }
}

}  // namespace gpuctl::ipc
