#include "gpuctld/config/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <toml++/toml.h>

#include "gpuctld/config/config_values.h"
#include "sched/apply_change.h"
#include "sched/policy.h"

namespace gpuctl::daemon {

namespace {

/// One file being read into a config that may hold earlier files' values.
class Reader : public ConfigValues {
 public:
  Reader(std::string file, ConfigOutcome& outcome)
      : ConfigValues(std::move(file), outcome.problems), outcome_(outcome) {}

  void read(const toml::table& root) {
    for (const auto& [key, value] : root) {
      if (key == "daemon")
        each(key, value, [&](auto& k, auto& v) { daemon_key(k, v); });
      else if (key == "slice")
        each(key, value, [&](auto& k, auto& v) { slice_table(k, v); });
      else if (key == "device")
        device_array(key, value);
      else
        problem(key.source(), key.str(), "unknown key; known: daemon, slice, device");
    }
  }

 private:
  template <class Visit>
  void each(const toml::key& key, const toml::node& node, Visit visit) {
    if (const toml::table* table = node.as_table())
      for (const auto& [k, v] : *table) visit(k, v);
    else
      problem(node.source(), key.str(), "must be a table: [" + std::string(key.str()) + "]");
  }

  void daemon_key(const toml::key& key, const toml::node& node) {
    const std::string field = "daemon." + std::string(key.str());
    DaemonOptions& options = outcome_.config.daemon;
    if (key == "latency_target_us") return duration(field, node, 1'000'000, options.latency_target);
    if (key == "block_target_us") return duration(field, node, 1'000'000, options.block_target);
    if (key == "evict_deadline_ms") return duration(field, node, 60'000, options.evict_deadline);
    if (key == "on_disobey") {
      const auto value = text(field, node);
      if (!value) return;
      if (*value == "report")
        options.on_disobey = OnDisobey::report;
      else if (*value == "stop")
        options.on_disobey = OnDisobey::stop;
      else
        problem(node.source(), field, "must be \"report\" or \"stop\"");
      return;
    }
    if (key == "always_preemptible") return boolean(field, node, options.always_preemptible);
    if (key == "time_slices") return boolean(field, node, options.time_slices);
    if (key == "socket_mode") {
      const auto value = text(field, node);
      if (!value) return;
      const bool octal = !value->empty() && value->size() <= 4 && value->find_first_not_of("01234567") == value->npos;
      if (!octal || std::stoul(*value, nullptr, 8) > 0777)
        problem(node.source(), field, "must be a mode like \"0660\"");
      else
        options.socket_mode = static_cast<std::uint32_t>(std::stoul(*value, nullptr, 8));
      return;
    }
    if (key == "socket_group") {
      if (const auto gid = group(field, node)) options.socket_group = static_cast<std::uint32_t>(*gid);
      return;
    }
    problem(
        key.source(), field,
        "unknown key; known: latency_target_us, block_target_us, evict_deadline_ms, on_disobey, always_preemptible, "
        "time_slices, socket_mode, socket_group");
  }

  void device_array(const toml::key& key, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr) return problem(node.source(), key.str(), "must be an array of tables: [[device]]");
    for (const toml::node& item : *list) {
      const toml::table* table = item.as_table();
      if (table == nullptr) {
        problem(item.source(), "device", "must be a table");
        continue;
      }
      DeviceSelector selector;
      selector.where = where(item.source());
      bool sound = true;
      for (const auto& [k, v] : *table) {
        if (k == "uuid") {
          const auto value = text("device.uuid", v);
          sound &= value.has_value();
          selector.uuid = value.value_or("");
        } else if (k == "index") {
          const auto value = integer("device.index", v);
          if (value && (*value < 0 || *value > 1023)) problem(v.source(), "device.index", "must be 0 to 1023");
          sound &= value.has_value();
          selector.index = static_cast<int>(value.value_or(-1));
        } else {
          problem(k.source(), "device." + std::string(k.str()), "unknown key; known: uuid, index");
        }
      }
      if (sound && selector.uuid.empty() == (selector.index < 0))
        problem(item.source(), "device", "needs either uuid or index");
      outcome_.config.devices.push_back(std::move(selector));
    }
  }

  void slice_table(const toml::key& key, const toml::node& node) {
    const std::string path(key.str());
    const std::string prefix = "slice.\"" + path + "\"";
    const toml::table* table = node.as_table();
    if (table == nullptr) return problem(node.source(), prefix, "must be a table: [" + prefix + "]");
    auto& slices = outcome_.config.slices;
    auto slice = std::find_if(slices.begin(), slices.end(), [&](const auto& s) { return s.path == path; });
    if (slice == slices.end()) slice = slices.insert(slices.end(), ConfiguredSlice{path, {}, {}, {}});
    slice->where = where(key.source());
    for (const auto& [k, v] : *table) {
      slice_key(prefix, k, v, slice->change);
      slice->where_of[std::string(k.str())] = where(v.source());
    }
    check(prefix, *slice);
  }

  void slice_key(const std::string& prefix, const toml::key& key, const toml::node& node, sched::SliceChange& change) {
    const std::string field = prefix + "." + std::string(key.str());
    const bool unlimited = node.value_exact<std::string>() == "unlimited";
    if (key == "reserve")
      change.reserve = integer(field, node);
    else if (key == "reserve_mode")
      change.reserve_mode = text(field, node);
    else if (key == "reserve_hold_ms")
      change.reserve_hold_ms = integer(field, node);
    else if (key == "max") {
      change.max_unlimited = unlimited;
      change.max = unlimited ? std::nullopt : integer(field, node);
    } else if (key == "weight")
      change.weight = integer(field, node);
    else if (key == "priority")
      change.priority = integer(field, node);
    else if (key == "memory_max") {
      change.memory_unlimited = unlimited;
      change.memory_max = unlimited ? std::nullopt : integer(field, node);
    } else if (key == "policy")
      change.policy = text(field, node);
    else if (key == "owner_uid")
      change.owner_uid = user(field, node);
    else if (key == "owner_gid")
      change.owner_gid = group(field, node);
    else
      problem(key.source(), field,
              "unknown key; known: reserve, reserve_mode, reserve_hold_ms, max, weight, priority, memory_max, policy, "
              "owner_uid, "
              "owner_gid");
  }

  /// What is wrong whatever the rest of the tree and the GPU are like.
  void check(const std::string& prefix, const ConfiguredSlice& slice) {
    sched::Slice fresh;
    fresh.policy = &sched::policies().front();
    if (slice.path == "/") fresh.reserve = {};
    const auto result = sched::apply_change(fresh, slice.change);
    if (result) return;
    const auto found = slice.where_of.find(result.error().field);
    outcome_.problems.push_back((found == slice.where_of.end() ? slice.where : found->second) + ": " + prefix + "." +
                                result.error().message());
  }

  ConfigOutcome& outcome_;
};

void read_file(const std::string& file, ConfigOutcome& outcome) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code error;
  if (!stream || std::filesystem::is_directory(file, error)) {
    outcome.problems.push_back(file + ": cannot be read");
    return;
  }
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  Reader reader(file, outcome);
  try {
    reader.read(toml::parse(content, file));
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    reader.problem(error.source(), "syntax", reason);
  }
}

}  // namespace

ConfigOutcome read_config(const std::string& file, bool required) {
  namespace fs = std::filesystem;
  ConfigOutcome outcome;
  if (file.empty()) return outcome;
  std::error_code error;
  if (fs::exists(file, error))
    read_file(file, outcome);
  else if (required)
    outcome.problems.push_back(file + ": no such file");

  std::vector<std::string> drop_ins;
  for (fs::directory_iterator entry(file + ".d", error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".toml") drop_ins.push_back(entry->path().string());
  std::sort(drop_ins.begin(), drop_ins.end());
  for (const std::string& drop_in : drop_ins) read_file(drop_in, outcome);

  auto& slices = outcome.config.slices;
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return outcome;
}

}  // namespace gpuctl::daemon
