// Every field of io.gpuctl once per direction. The two lists of a type stand next to each other.
#include "ipc/types.h"

#include <boost/json/value_from.hpp>

#include "ipc/message.h"

namespace gpuctl::ipc {
namespace {

namespace json = boost::json;

/// Writes the fields of one object in the order of the interface.
class Writer {
 public:
  Writer& put(std::string_view name, const std::string& text) { return set(name, json::value(to_utf8(text))); }
  Writer& put(std::string_view name, std::int64_t integer) { return set(name, integer); }
  Writer& put(std::string_view name, double number) { return set(name, number); }
  Writer& put(std::string_view name, bool boolean) { return set(name, boolean); }
  Writer& put(std::string_view name, json::array array) { return set(name, std::move(array)); }
  Writer& put(std::string_view name, const std::vector<std::int64_t>& list) {
    return set(name, json::array(list.begin(), list.end()));
  }
  template <class T>
  Writer& put(std::string_view name, const std::optional<T>& value) {
    return value ? put(name, *value) : *this;
  }
  json::object take() { return std::move(object_); }

 private:
  Writer& set(std::string_view name, json::value value) {
    object_.emplace(json::string_view(name.data(), name.size()), std::move(value));
    return *this;
  }
  json::object object_;
};

json::array texts_to_json(const std::vector<std::string>& list) {
  json::array array;
  for (const std::string& item : list) array.emplace_back(to_utf8(item));
  return array;
}

/// Sizes and counts; a negative one is a mistake at the other end.
std::int64_t amount(Fields& fields, std::string_view name) {
  return fields.integer(name, 0);
}

}  // namespace

json::object to_json(const Slice& s) {
  return Writer()
      .put("path", s.path)
      .put("reserve", s.reserve)
      .put("reserve_mode", s.reserve_mode)
      .put("reserve_hold_ms", s.reserve_hold_ms)
      .put("max", s.max)
      .put("weight", s.weight)
      .put("priority", s.priority)
      .put("memory_max", s.memory_max)
      .put("policy", s.policy)
      .put("owner_uid", s.owner_uid)
      .put("owner_gid", s.owner_gid)
      .put("granted", s.granted)
      .put("demand", s.demand)
      .put("clients", s.clients)
      .put("faults", s.faults)
      .take();
}

void read(Fields& fields, Slice& s) {
  s.path = fields.text("path");
  s.reserve = amount(fields, "reserve");
  s.reserve_mode = fields.text("reserve_mode");
  s.reserve_hold_ms = amount(fields, "reserve_hold_ms");
  s.max = fields.maybe_integer("max", 0);
  s.weight = amount(fields, "weight");
  s.priority = fields.integer("priority");
  s.memory_max = fields.maybe_integer("memory_max", 0);
  s.policy = fields.text("policy");
  s.owner_uid = amount(fields, "owner_uid");
  s.owner_gid = fields.integer("owner_gid", -1);
  s.granted = amount(fields, "granted");
  s.demand = amount(fields, "demand");
  s.clients = amount(fields, "clients");
  s.faults = amount(fields, "faults");
}

json::object to_json(const SliceSettings& s) {
  return Writer()
      .put("reserve", s.reserve)
      .put("reserve_mode", s.reserve_mode)
      .put("reserve_hold_ms", s.reserve_hold_ms)
      .put("max", s.max)
      .put("max_unlimited", s.max_unlimited)
      .put("weight", s.weight)
      .put("priority", s.priority)
      .put("memory_max", s.memory_max)
      .put("memory_unlimited", s.memory_unlimited)
      .put("policy", s.policy)
      .put("owner_uid", s.owner_uid)
      .put("owner_gid", s.owner_gid)
      .take();
}

void read(Fields& fields, SliceSettings& s) {
  s.reserve = fields.maybe_integer("reserve", 0);
  s.reserve_mode = fields.maybe_text("reserve_mode");
  s.reserve_hold_ms = fields.maybe_integer("reserve_hold_ms", 0);
  s.max = fields.maybe_integer("max", 0);
  s.max_unlimited = fields.maybe_boolean("max_unlimited");
  s.weight = fields.maybe_integer("weight", 0);
  s.priority = fields.maybe_integer("priority");
  s.memory_max = fields.maybe_integer("memory_max", 0);
  s.memory_unlimited = fields.maybe_boolean("memory_unlimited");
  s.policy = fields.maybe_text("policy");
  s.owner_uid = fields.maybe_integer("owner_uid", 0);
  s.owner_gid = fields.maybe_integer("owner_gid", -1);
}

json::object to_json(const Device& d) {
  return Writer()
      .put("index", d.index)
      .put("name", d.name)
      .put("uuid", d.uuid)
      .put("kind", d.kind)
      .put("sms", d.sms)
      .put("memory_bytes", d.memory_bytes)
      .put("mode", d.mode)
      .take();
}

void read(Fields& fields, Device& d) {
  d.index = amount(fields, "index");
  d.name = fields.text("name");
  d.uuid = fields.text("uuid");
  d.kind = fields.text("kind");
  d.sms = amount(fields, "sms");
  d.memory_bytes = amount(fields, "memory_bytes");
  d.mode = fields.text("mode");
}

json::object to_json(const ClientUsage& u) {
  return Writer()
      .put("device", u.device)
      .put("granted", u.granted)
      .put("demand", u.demand)
      .put("holding", u.holding)
      .put("outstanding", u.outstanding)
      .put("launches", u.launches)
      .put("block_tasks", u.block_tasks)
      .put("evictions", u.evictions)
      .put("evict_us_last", u.evict_us_last)
      .put("evict_us_mean", u.evict_us_mean)
      .put("evict_us_max", u.evict_us_max)
      .put("busy_us", u.busy_us)
      .put("memory", u.memory)
      .put("in_force", u.in_force)
      .put("sms_told", u.sms_told)
      .put("priority_rank", u.priority_rank)
      .put("priorities", u.priorities)
      .put("time_slice", u.time_slice)
      .put("time_slice_us", u.time_slice_us)
      .put("channel_groups", u.channel_groups)
      .put("latency_us_last", u.latency_us_last)
      .put("latency_us_log2", u.latency_us_log2)
      .put("evict_us_log2", u.evict_us_log2)
      .take();
}

void read(Fields& fields, ClientUsage& u) {
  u.device = amount(fields, "device");
  u.granted = amount(fields, "granted");
  u.demand = amount(fields, "demand");
  u.holding = amount(fields, "holding");
  u.outstanding = amount(fields, "outstanding");
  u.launches = amount(fields, "launches");
  u.block_tasks = amount(fields, "block_tasks");
  u.evictions = amount(fields, "evictions");
  u.evict_us_last = fields.number("evict_us_last");
  u.evict_us_mean = fields.number("evict_us_mean");
  u.evict_us_max = fields.number("evict_us_max");
  u.busy_us = amount(fields, "busy_us");
  u.memory = amount(fields, "memory");
  u.in_force = fields.text("in_force");
  u.sms_told = amount(fields, "sms_told");
  u.priority_rank = amount(fields, "priority_rank");
  u.priorities = amount(fields, "priorities");
  u.time_slice = fields.text("time_slice");
  u.time_slice_us = amount(fields, "time_slice_us");
  u.channel_groups = amount(fields, "channel_groups");
  u.latency_us_last = fields.number("latency_us_last");
  u.latency_us_log2 = fields.integers("latency_us_log2");
  u.evict_us_log2 = fields.integers("evict_us_log2");
}

json::object to_json(const Client& c) {
  return Writer()
      .put("pid", c.pid)
      .put("uid", c.uid)
      .put("command", c.command)
      .put("slice", c.slice)
      .put("state", c.state)
      .put("usage", to_json(c.usage))
      .take();
}

void read(Fields& fields, Client& c) {
  c.pid = amount(fields, "pid");
  c.uid = amount(fields, "uid");
  c.command = fields.text("command");
  c.slice = fields.text("slice");
  c.state = fields.text("state");
  c.usage = read_list<ClientUsage>(fields, "usage");
}

json::object to_json(const Kernel& k) {
  return Writer()
      .put("name", k.name)
      .put("module", k.module)
      .put("form", k.form)
      .put("reason", k.reason)
      .put("launches", k.launches)
      .put("registers", k.registers)
      .put("registers_original", k.registers_original)
      .put("per_sm", k.per_sm)
      .put("block_task_ns", k.block_task_ns)
      .take();
}

void read(Fields& fields, Kernel& k) {
  k.name = fields.text("name");
  k.module = fields.text("module");
  k.form = fields.text("form");
  k.reason = fields.text("reason");
  k.launches = amount(fields, "launches");
  k.registers = amount(fields, "registers");
  k.registers_original = amount(fields, "registers_original");
  k.per_sm = amount(fields, "per_sm");
  k.block_task_ns = amount(fields, "block_task_ns");
}

json::object to_json(const KernelPoint& p) {
  return Writer().put("sms", p.sms).put("block_task_us", p.block_task_us).take();
}

void read(Fields& fields, KernelPoint& p) {
  p.sms = amount(fields, "sms");
  p.block_task_us = fields.number("block_task_us");
}

json::object to_json(const KernelDurations& k) {
  return Writer()
      .put("name", k.name)
      .put("module", k.module)
      .put("launches", k.launches)
      .put("predicted_us", k.predicted_us)
      .put("observed_us", k.observed_us)
      .put("error", k.error)
      .put("evict_us", k.evict_us)
      .put("curve", to_json(k.curve))
      .take();
}

void read(Fields& fields, KernelDurations& k) {
  k.name = fields.text("name");
  k.module = fields.text("module");
  k.launches = amount(fields, "launches");
  k.predicted_us = fields.number("predicted_us");
  k.observed_us = fields.number("observed_us");
  k.error = fields.number("error");
  k.evict_us = fields.number("evict_us");
  k.curve = read_list<KernelPoint>(fields, "curve");
}

json::object to_json(const Status& s) {
  return Writer()
      .put("version", s.version)
      .put("devices", to_json(s.devices))
      .put("slices", s.slices)
      .put("clients", s.clients)
      .put("uptime_s", s.uptime_s)
      .put("notes", texts_to_json(s.notes))
      .put("faults", s.faults)
      .take();
}

void read(Fields& fields, Status& s) {
  s.version = fields.text("version");
  s.devices = read_list<Device>(fields, "devices");
  s.slices = amount(fields, "slices");
  s.clients = amount(fields, "clients");
  s.uptime_s = amount(fields, "uptime_s");
  s.notes = fields.texts("notes");
  s.faults = amount(fields, "faults");
}

json::object to_json(const EndedClient& c) {
  return Writer()
      .put("pid", c.pid)
      .put("command", c.command)
      .put("slice", c.slice)
      .put("mps", c.mps)
      .put("signals", texts_to_json(c.signals))
      .put("ended", c.ended)
      .take();
}

void read(Fields& fields, EndedClient& c) {
  c.pid = amount(fields, "pid");
  c.command = fields.text("command");
  c.slice = fields.text("slice");
  c.mps = fields.text("mps");
  c.signals = fields.texts("signals");
  c.ended = fields.boolean("ended");
}

json::object to_json(const Snapshot& s) {
  return Writer()
      .put("time_ns", s.time_ns)
      .put("devices", to_json(s.devices))
      .put("slices", to_json(s.slices))
      .put("clients", to_json(s.clients))
      .take();
}

void read(Fields& fields, Snapshot& s) {
  s.time_ns = amount(fields, "time_ns");
  s.devices = read_list<Device>(fields, "devices");
  s.slices = read_list<Slice>(fields, "slices");
  s.clients = read_list<Client>(fields, "clients");
}

}  // namespace gpuctl::ipc
