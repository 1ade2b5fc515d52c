#include "gpuctld/config/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <toml++/toml.h>

#include "base/former_mode.h"
#include "base/join_text.h"
#include "base/regular_file.h"
#include "gpuctld/config/daemon_keys.h"
#include "gpuctld/config/former_keys.h"
#include "sched/slice_tree.h"
#include "slicefile/join_ids.h"
#include "slicefile/tables.h"

namespace gpuctl::daemon {

namespace {

/// Of default_slice: programs that no slice takes in are refused. A slice may have that name, but not be it.
constexpr std::string_view kNoSlice = "none";

/// Where a key belongs that stands elsewhere.
std::optional<std::string> place_of(std::string_view key) {
  const auto among = [&](const auto& rows) {
    return std::ranges::any_of(rows, [&](const auto& row) { return row.name == key; });
  };
  if (among(kDaemonKeys)) return "is a key of section [daemon]";
  if (among(kLabKeys)) return "is a key of section [lab], for experiments";
  if (among(kSliceSettings)) return "is a setting of a slice: it belongs into a section such as [slice.\"batch\"]";
  return std::nullopt;
}

/// Reads one file into a config that may already hold the values of earlier files.
class Reader : public slicefile::SliceTables {
 public:
  Reader(std::string file, Accepted accepted, ConfigOutcome& outcome)
      : SliceTables(std::move(file), outcome.problems, outcome.config.slices, accepted == Accepted::all),
        accepted_(accepted),
        outcome_(outcome) {}

  void read(const toml::table& root) {
    for (const auto& [key, value] : root) {
      if (key == "daemon")
        each(key, value, [&](auto& k, auto& v) { daemon_key(k, v); });
      else if (key == "slice")
        tables(key, value);
      else if (key == "lab")
        lab_table(key, value);
      else if (key == "device")
        device_array(key, value);
      else
        problem(key.source(), key.str(), place_of(key.str()).value_or("unknown key; known: daemon, slice, device"));
    }
  }

 private:
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
    if (known == keys.end())
      return problem(key.source(), field,
                     place_of(key.str()).value_or("unknown key; known: " + slicefile::names_of(keys)));
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
  void daemon_value(const DaemonKey& key, const std::string& field, const toml::node& node, std::string& value) {
    if (key.slice) return slice_path(field, node, value);
    if (auto list = join(field, node, true)) value = *list == kNobodyJoins ? "" : std::move(*list);
  }
  void daemon_value(const DaemonKey&, const std::string& field, const toml::node& node, OnDisobey& value) {
    one_of(field, node, value, std::array{std::pair("report", OnDisobey::report), std::pair("stop", OnDisobey::stop)});
  }
  void daemon_value(const DaemonKey&, const std::string& field, const toml::node& node, MpsChoice& value) {
    one_of(field, node, value,
           std::array{std::pair("manage", MpsChoice::manage), std::pair("leave", MpsChoice::leave)});
  }
  /// Whether there is such a slice shows only when a program comes: it may be made later.
  void slice_path(const std::string& field, const toml::node& node, std::string& value) {
    const auto path = text(field, node);
    if (!path) return;
    if (*path == kNoSlice) return value.clear();
    if (*path != "/" && sched::bad_path(*path) != nullptr)
      return problem(node.source(), field, "must be the path of a slice, such as \"others\", \"/\", or \"none\"");
    value = *path;
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

  Accepted accepted_;
  ConfigOutcome& outcome_;
};

void read_file(const std::string& file, Accepted accepted, ConfigOutcome& outcome) {
  Reader reader(file, accepted, outcome);
  slicefile::parse(file, reader, [&](const toml::table& root) { reader.read(root); });
}

}  // namespace

ConfigOutcome read_config(const std::string& file, bool required, Accepted accepted) {
  namespace fs = std::filesystem;
  ConfigOutcome outcome;
  if (file.empty()) return outcome;
  std::error_code error;
  if (is_null_device(file)) return outcome;
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
  for (ConfiguredSlice& slice : slices)  // when no later file can say another mode
    if (accepted == Accepted::all && replace_former_mode(slice.change))
      outcome.notes.push_back(slice.where_of.at("reserve_mode") + ": slice.\"" + slice.path +
                              "\".reserve_mode: " + std::string(kFormerReserveModeSays));
  return outcome;
}

std::vector<std::string> links_in_joins(const Config& config) {
  std::vector<std::string> lines;
  for (const ConfiguredSlice& slice : config.slices)
    for (const std::string& line : slicefile::linked_exes(slice.change.join.value_or("")))
      lines.push_back(slice.where_of.at("join") + ": slice.\"" + slice.path + "\".join: " + line);
  return lines;
}

}  // namespace gpuctl::daemon
