#include "gpuctl/line/settings.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "gpuctl/text/suggest.h"
#include "gpuctl/text/units.h"
#include "sched/policy.h"
#include "sched/slice.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::cli {
namespace {

constexpr std::int64_t kIdMax = 0xfffffffe;  // the greatest uid or gid; one more means "none"

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Outcome<std::int64_t> amount_of_sms(std::string_view value, const std::string& where, const char* more) {
  const auto number = parse_integer(value);
  if (number && *number >= 0) return *number;
  return usage(where + ": " + quoted(value) + " is not a number of SMs; give a whole number such as 8" + more);
}

Outcome<std::int64_t> whole_number(std::string_view value, const std::string& where, std::int64_t least,
                                   const char* example) {
  const auto number = parse_integer(value);
  if (number && *number >= least) return *number;
  return usage(where + ": " + quoted(value) + " is not a whole number" +
               (least > 0 ? " of " + std::to_string(least) + " or more" : std::string()) + " such as " + example);
}

Outcome<void> set_owner(std::string_view value, const std::string& where, ipc::SliceSettings& settings) {
  const std::size_t colon = value.find(':');
  const std::string user(value.substr(0, colon));
  if (user.empty()) return usage(where + ": " + quoted(value) + " names no user; give USER or USER:GROUP");

  const auto uid = parse_integer(user);
  // Names first: a user may be called 1000.
  if (const passwd* entry = ::getpwnam(user.c_str())) {
    settings.owner_uid = entry->pw_uid;
    settings.owner_gid = entry->pw_gid;
  } else if (uid && *uid >= 0 && *uid <= kIdMax) {
    settings.owner_uid = *uid;
    settings.owner_gid = ipc::kNoGroup;
  } else {
    return usage(where + ": there is no user " + quoted(user) + "; give a user's name or number");
  }
  if (colon == std::string_view::npos) return boost::system::in_place_value;

  const std::string group(value.substr(colon + 1));
  const auto gid = parse_integer(group);
  if (const ::group* entry = ::getgrnam(group.c_str())) {
    settings.owner_gid = entry->gr_gid;
  } else if (gid && *gid >= 0 && *gid <= kIdMax) {
    settings.owner_gid = *gid;
  } else {
    return usage(where + ": there is no group " + quoted(group) + "; give a group's name or number");
  }
  return boost::system::in_place_value;
}

/// True when `key` already has a value.
bool given(std::string_view key, const ipc::SliceSettings& s) {
  if (key == "reserve") return s.reserve.has_value();
  if (key == "reserve-mode") return s.reserve_mode.has_value();
  if (key == "reserve-hold") return s.reserve_hold_ms.has_value();
  if (key == "max") return s.max || s.max_unlimited;
  if (key == "weight") return s.weight.has_value();
  if (key == "priority") return s.priority.has_value();
  if (key == "memory-max") return s.memory_max || s.memory_unlimited;
  if (key == "policy") return s.policy.has_value();
  return s.owner_uid.has_value();
}

}  // namespace

const std::vector<SettingKey>& setting_keys() {
  static const std::vector<SettingKey> keys{
      {"reserve", "N", "SMs of every GPU that are always there for the slice"},
      {"reserve-mode", "strict|active|lend",
       "Keep the reserve free: always, while the slice is active (default), or never"},
      {"reserve-hold", "TIME", "With mode active: how long after its last launch the slice counts as active (100ms)"},
      {"max", "N|none", "SMs of every GPU that the slice uses at most"},
      {"weight", "N", "Share of what is left after the reserves, relative to its siblings (100)"},
      {"priority", "N", "Greater goes first (0)"},
      {"memory-max", "SIZE|none", "Device memory of each GPU for all its programs together, such as 16G"},
      {"policy", "NAME[:OPTION=VALUE]", "How the slice divides its SMs, or the GPU's time, among what is below it"},
      {"owner", "USER[:GROUP]", "Who may create slices below it, change them and run programs in them"},
  };
  return keys;
}

std::string policy_help() {
  std::string help = "Policies:";
  for (const sched::Policy& policy : sched::policies()) {
    std::string line = "  " + std::string(policy.name);
    line.resize(std::max<std::size_t>(line.size() + 2, 34), ' ');
    help += '\n' + line + std::string(policy.help);
  }
  help += "\nPolicies for jobs, one at a time on a GPU but for sim; options as in hpf:spatial:protect_ms=50:";
  for (const sched::JobPolicyRow& row : sched::job_policies()) {
    if (!sched::for_slices(row)) continue;
    std::string line = "  " + std::string(row.name);
    line.resize(std::max<std::size_t>(line.size() + 2, 34), ' ');
    help += '\n' + line + std::string(row.help);
    if (!row.options.empty()) help += "; " + std::string(row.options);
  }
  return help;
}

Outcome<void> apply_setting(std::string_view key, std::string_view value, const std::string& where,
                            ipc::SliceSettings& settings) {
  // Assigns a parsed number, or hands its failure on.
  const auto put = [](auto& field, const Outcome<std::int64_t>& number) -> Outcome<void> {
    if (!number) return number.error();
    field = *number;
    return boost::system::in_place_value;
  };
  if (key == "reserve") return put(settings.reserve, amount_of_sms(value, where, ""));
  if (key == "weight") return put(settings.weight, whole_number(value, where, 1, "50"));
  if (key == "priority")
    return put(settings.priority, whole_number(value, where, std::numeric_limits<std::int64_t>::min(), "10"));
  if (key == "owner") return set_owner(value, where, settings);
  if (key == "max") {
    if (value != "none") return put(settings.max, amount_of_sms(value, where, ", or 'none' for no limit"));
    settings.max_unlimited = true;
  } else if (key == "memory-max") {
    if (value == "none") {
      settings.memory_unlimited = true;
    } else if (const auto bytes = parse_size(value); bytes && *bytes > 0) {
      settings.memory_max = *bytes;
    } else {
      return usage(where + ": " + quoted(value) +
                   " is not a size; give bytes or a number with K, M, G or T such as 16G, or 'none'");
    }
  } else if (key == "reserve-mode") {
    if (!sched::reserve_mode(value))
      return usage(where + ": " + quoted(value) + " is not a mode of reserving" +
                   hint(value, {"strict", "active", "lend"}));
    settings.reserve_mode = value;
  } else if (key == "reserve-hold") {
    const auto hold = parse_milliseconds(value);
    if (!hold)
      return usage(where + ": " + quoted(value) +
                   " is not a time; give whole milliseconds or seconds such as 100ms or 2s");
    if (*hold < sched::kReserveHoldMin.count() || *hold > sched::kReserveHoldMax.count())
      return usage(where + ": " + quoted(value) + " is not between 1ms and 3600s");
    settings.reserve_hold_ms = *hold;
  } else {
    settings.policy = value;
  }
  return boost::system::in_place_value;
}

Outcome<void> apply_assignment(std::string_view assignment, ipc::SliceSettings& settings) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return usage(quoted(assignment) + " is not KEY=VALUE; write for example max=40");
  std::string key(assignment.substr(0, equals));
  std::replace(key.begin(), key.end(), '_', '-');
  std::vector<std::string> names;
  for (const SettingKey& known : setting_keys()) names.emplace_back(known.name);
  if (std::find(names.begin(), names.end(), key) == names.end())
    return usage("there is no setting " + quoted(key) + hint(key, names));
  if (given(key, settings)) return usage(key + ": is given twice; give it once");
  return apply_setting(key, assignment.substr(equals + 1), key, settings);
}

Outcome<std::string> slice_path(std::string_view name) {
  if (name.empty()) return usage("the name of the slice is empty; give one such as 'batch', or '/' for the root");
  const std::size_t first = name.find_first_not_of('/');
  if (first == std::string_view::npos) return std::string("/");
  return std::string(name.substr(first, name.find_last_not_of('/') - first + 1));
}

std::string user_name(std::int64_t uid) {
  const passwd* entry = uid >= 0 && uid <= kIdMax ? ::getpwuid(static_cast<uid_t>(uid)) : nullptr;
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

std::string group_name(std::int64_t gid) {
  if (gid < 0 || gid > kIdMax) return "-";
  const ::group* entry = ::getgrgid(static_cast<gid_t>(gid));
  return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

}  // namespace gpuctl::cli
