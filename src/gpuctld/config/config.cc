#include "gpuctld/config/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <toml++/toml.h>

#include "base/limit_text.h"
#include "base/regular_file.h"
#include "gpuctld/config/config_values.h"
#include "gpuctld/config/daemon_keys.h"
#include "gpuctld/config/former_keys.h"
#include "sched/apply_change.h"
#include "sched/policy.h"

namespace gpuctl::daemon {

namespace {

constexpr std::size_t kMostConfigBytes = 16u << 20;  // of a file; a thousand slices take a hundredth

/// The names of a table's rows: "a, b, c".
std::string names_of(const auto& rows) {
  std::string names;
  for (const auto& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

/// Reads one file into a config that may already hold the values of earlier files.
class Reader : public ConfigValues {
 public:
  Reader(std::string file, Accepted accepted, ConfigOutcome& outcome)
      : ConfigValues(std::move(file), outcome.problems), accepted_(accepted), outcome_(outcome) {}

  void read(const toml::table& root) {
    for (const auto& [key, value] : root) {
      if (key == "daemon")
        each(key, value, [&](auto& k, auto& v) { daemon_key(k, v); });
      else if (key == "slice")
        each(key, value, [&](auto& k, auto& v) { slice_table(k, v); });
      else if (key == "lab")
        lab_table(key, value);
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
    const auto former = std::ranges::find(kFormerKeys, std::string_view(key.str()), &FormerKey::name);
    if (former == kFormerKeys.end()) return one_key("daemon.", kDaemonKeys, key, node);
    const std::string what = former->gone.empty() ? "is " + std::string(former->name) + " of [lab] now, for experiments"
                                                  : "has no effect any more: " + std::string(former->gone);
    const std::string note = where(key.source()) + ": daemon." + std::string(former->name) + ": " + what;
    (accepted_ == Accepted::all ? outcome_.notes : outcome_.problems).push_back(note);
    if (former->gone.empty()) one_key("daemon.", kLabKeys, key, node);
  }

  void lab_table(const toml::key& key, const toml::node& node) {
    if (accepted_ != Accepted::all) problem(key.source(), "lab", "is for experiments, and refused by --strict");
    each(key, node, [&](auto& k, auto& v) { one_key("lab.", kLabKeys, k, v); });
  }

  void one_key(const std::string& prefix, const auto& keys, const toml::key& key, const toml::node& node) {
    const std::string field = prefix + std::string(key.str());
    const auto known = std::ranges::find(keys, std::string_view(key.str()), &DaemonKey::name);
    if (known == keys.end()) return problem(key.source(), field, "unknown key; known: " + names_of(keys));
    DaemonOptions& options = outcome_.config.daemon;
    std::visit([&](auto member) { daemon_value(*known, field, node, options.*member); }, known->member);
  }

  template <class Duration>
  void daemon_value(const DaemonKey& key, const std::string& field, const toml::node& node, Duration& value) {
    duration(field, node, key.least, key.greatest, value);
  }
  void daemon_value(const DaemonKey&, const std::string& field, const toml::node& node, bool& value) {
    boolean(field, node, value);
  }
  void daemon_value(const DaemonKey&, const std::string& field, const toml::node& node, OnDisobey& value) {
    one_of(field, node, value, std::array{std::pair("report", OnDisobey::report), std::pair("stop", OnDisobey::stop)});
  }
  void daemon_value(const DaemonKey&, const std::string& field, const toml::node& node, Placement& value) {
    one_of(field, node, value,
           std::array{std::pair("auto", Placement::automatic), std::pair("sms", Placement::sms),
                      std::pair("capacity", Placement::capacity)});
  }
  /// `known`: the texts and what they mean.
  template <class Choice, class Known>
  void one_of(const std::string& field, const toml::node& node, Choice& value, const Known& known) {
    const auto name = text(field, node);
    if (!name) return;
    std::string names;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (*name == known[i].first) return void(value = known[i].second);
      names += i == 0 ? "\"" : i + 1 == known.size() ? " or \"" : ", \"";
      names.append(known[i].first).append("\"");
    }
    problem(node.source(), field, "must be " + names);
  }
  void daemon_value(const DaemonKey& key, const std::string& field, const toml::node& node,
                    std::optional<std::uint32_t>& value) {
    if (key.group) {
      if (const auto gid = group(field, node)) value = static_cast<std::uint32_t>(*gid);
      return;
    }
    const auto digits = text(field, node);
    if (!digits) return;
    const bool octal = !digits->empty() && digits->size() <= 4 && digits->find_first_not_of("01234567") == digits->npos;
    if (!octal || std::stoul(*digits, nullptr, 8) > 0777)
      problem(node.source(), field, "must be a mode like \"0660\"");
    else
      value = static_cast<std::uint32_t>(std::stoul(*digits, nullptr, 8));
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
    const auto setting = std::ranges::find(kSliceSettings, std::string_view(key.str()), &SliceSetting::name);
    if (setting == kSliceSettings.end())
      return problem(key.source(), field, "unknown key; known: " + names_of(kSliceSettings));
    drop(*setting, change);
    if (setting->text != nullptr)
      change.*setting->text = text(field, node);
    else if (setting->lifted != nullptr && lifts_limit(node.value_or(std::string_view())))
      change.*setting->lifted = true;
    else
      change.*setting->number = setting->kind == SettingKind::user    ? user(field, node)
                                : setting->kind == SettingKind::group ? group(field, node)
                                : setting->kind == SettingKind::bytes ? bytes(field, node)
                                : setting->lifted != nullptr
                                    ? integer(field, node, R"(must be a whole number, or "none")")
                                    : integer(field, node);
  }

  /// Finds what is wrong whatever the rest of the tree and the GPU are.
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

  Accepted accepted_;
  ConfigOutcome& outcome_;
};

void read_file(const std::string& file, Accepted accepted, ConfigOutcome& outcome) {
  const auto content = read_regular_file(file, kMostConfigBytes);
  if (!content) return outcome.problems.push_back(content.error().message);
  Reader reader(file, accepted, outcome);
  try {
    reader.read(toml::parse(*content, file));
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    reader.problem(error.source(), "syntax", reason);
  }
}

}  // namespace

ConfigOutcome read_config(const std::string& file, bool required, Accepted accepted) {
  namespace fs = std::filesystem;
  ConfigOutcome outcome;
  if (file.empty()) return outcome;
  std::error_code error;
  if (fs::exists(file, error))
    read_file(file, accepted, outcome);
  else if (required)
    outcome.problems.push_back(file + ": no such file");

  std::vector<std::string> drop_ins;
  const std::string directory = file + ".d";
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".toml") drop_ins.push_back(entry->path().string());
  if (error && error != std::errc::no_such_file_or_directory)
    outcome.problems.push_back(directory + ": cannot be read: " + error.message());
  std::sort(drop_ins.begin(), drop_ins.end());
  for (const std::string& drop_in : drop_ins) read_file(drop_in, accepted, outcome);

  auto& slices = outcome.config.slices;
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return outcome;
}

}  // namespace gpuctl::daemon
