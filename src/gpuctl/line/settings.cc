#include "gpuctl/line/settings.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "base/device_list.h"
#include "base/former_mode.h"
#include "base/join_text.h"
#include "base/latency_text.h"
#include "base/limit_text.h"
#include "base/quota_text.h"
#include "gpuctl/text/suggest.h"
#include "gpuctl/text/units.h"
#include "ipc/codec.h"
#include "sched/policy.h"
#include "sched/slice.h"
#include "slicefile/join_ids.h"

namespace gpuctl::cli {
namespace {

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

Outcome<std::int64_t> amount_of_sms(std::string_view value, const std::string& where, const char* more) {
  const auto number = parse_integer(value);
  if (number && *number >= 0) return *number;
  return usage(where + ": " + in_quotes(value) + " is not a number of SMs; give a whole number such as 8" + more);
}

/// Refuses only what is no number of its kind at all; the daemon checks the rest of the range.
Outcome<std::int64_t> whole_number(std::string_view value, const std::string& where, const SliceSetting& setting) {
  const auto number = parse_integer(value);
  if (number && (*number >= setting.least || setting.least < 0)) return *number;
  return usage(where + ": " + in_quotes(value) + " is not a whole number" +
               (setting.least > 0 ? " of " + std::to_string(setting.least) + " or more" : std::string()) + " such as " +
               setting.example);
}

Outcome<void> set_owner(std::string_view value, const std::string& where, ipc::SliceSettings& settings) {
  const std::size_t colon = value.find(':');
  const std::string user(value.substr(0, colon));
  if (user.empty()) return usage(where + ": " + in_quotes(value) + " names no user; give USER or USER:GROUP");

  const auto uid = parse_integer(user);
  // Names first: a user may be called 1000.
  if (const passwd* entry = ::getpwnam(user.c_str())) {
    settings.owner_uid = entry->pw_uid;
    settings.owner_gid = entry->pw_gid;
  } else if (uid && *uid >= 0 && *uid <= kIdGreatest) {
    settings.owner_uid = *uid;
    settings.owner_gid = ipc::kNoGroup;
  } else {
    return usage(where + ": there is no user " + in_quotes(user) + "; give a user's name or number");
  }
  if (colon == std::string_view::npos) return {};

  const std::string group(value.substr(colon + 1));
  const auto gid = parse_integer(group);
  if (const ::group* entry = ::getgrnam(group.c_str())) {
    settings.owner_gid = entry->gr_gid;
  } else if (gid && *gid >= 0 && *gid <= kIdGreatest) {
    settings.owner_gid = *gid;
  } else {
    return usage(where + ": there is no group " + in_quotes(group) + "; give a group's name or number");
  }
  return {};
}

/// "100ms"; "3600s" for whole seconds.
std::string time_text(std::int64_t ms) {
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

Outcome<std::int64_t> milliseconds(const SliceSetting& setting, std::string_view value, const std::string& where) {
  const auto time = parse_milliseconds(value);
  if (!time)
    return usage(where + ": " + in_quotes(value) +
                 " is not a time; give whole milliseconds or seconds such as 100ms or 2s");
  if (*time >= setting.least && *time <= setting.greatest) return *time;
  return usage(where + ": " + in_quotes(value) + " is not between " + time_text(setting.least) + " and " +
               time_text(setting.greatest));
}

Outcome<std::int64_t> bytes(std::string_view value, const std::string& where) {
  if (const auto size = parse_size(value)) return *size;
  return usage(where + ": " + in_quotes(value) +
               " is not a size; give bytes or a number with K, M, G or T such as 16G, or 'none'");
}

}  // namespace

std::vector<const SliceSetting*> setting_options() {
  std::vector<const SliceSetting*> options;
  for (const SliceSetting& setting : kSliceSettings)
    if (setting.option != nullptr) options.push_back(&setting);
  return options;
}

std::string policy_help() {
  std::string help = "Policies:";
  const auto add = [&](const sched::Policy& policy) {
    std::string line = "  " + std::string(policy.name);
    line.resize(std::max<std::size_t>(line.size() + 2, 34), ' ');
    help += '\n' + line + std::string(policy.help);
    if (!policy.options.empty()) help += "; " + std::string(policy.options);
  };
  std::ranges::for_each(sched::offered_policies(), add);
  help += "\nPolicies of papers, to repeat their figures:";
  std::ranges::for_each(sched::policies_of_papers(), add);
  help += "\nUnder each but share and sim programs take turns on a GPU. Options as in hpf:spatial:protect_ms=50.";
  return help;
}

Outcome<void> apply_setting(const SliceSetting& setting, std::string_view value, const std::string& where,
                            ipc::SliceSettings& settings) {
  if (setting.lifted != nullptr && lifts_limit(value)) {
    settings.*setting.lifted = true;
    return {};
  }
  if (setting.per_gpu != nullptr && is_per_gpu(value)) {
    if (give_amount(setting, value, settings)) return {};
    return usage(where + ": " + in_quotes(value) + " is not an amount; give " +
                 std::string(per_gpu_form(setting.amount_of())));
  }
  // Assigns a parsed number, or passes its failure on.
  const auto put = [&](const Outcome<std::int64_t>& number) -> Outcome<void> {
    if (!number) return number.error();
    settings.*setting.number = *number;
    return {};
  };
  const auto put_text = [&](bool sound, const char* what_else, std::string_view form) -> Outcome<void> {
    if (!sound) return usage(where + ": " + in_quotes(value) + ' ' + what_else + "; give " + std::string(form));
    settings.*setting.text = value;
    return {};
  };
  switch (setting.kind) {
    case SettingKind::sms:
      if (lifts_limit(value)) return put(std::int64_t{0});
      return put(amount_of_sms(value, where, setting.lifted != nullptr ? ", or 'none' for no limit" : ""));
    case SettingKind::milliseconds:
      return put(milliseconds(setting, value, where));
    case SettingKind::number:
      return put(whole_number(value, where, setting));
    case SettingKind::bytes:
      if (lifts_limit(value)) return put(std::int64_t{0});
      return put(bytes(value, where));
    case SettingKind::choice:
      if (is_former_mode(setting, value)) return usage(where + ": " + std::string(kFormerReserveModeSays));
      if (std::ranges::find(setting.choices, value) == setting.choices.end()) {
        const auto meant = closest(value, {setting.choices.begin(), setting.choices.end()});
        return usage(where + ": " + in_quotes(value) + " is not one of " + setting.argument +
                     (meant ? "; did you mean '" + *meant + "'?" : ""));
      }
      settings.*setting.text = value;
      return {};
    case SettingKind::latency:
      return put_text(parse_latency(value).has_value(), "is not a target", kLatencyForm);
    case SettingKind::quota:
      return put_text(is_quota(value), "is not a quota", kQuotaForm);
    case SettingKind::burst:
      return put_text(is_burst(value), "is not a burst", kBurstForm);
    case SettingKind::devices:
      return put_text(parse_devices(value).has_value(), "names no GPUs", kDevicesForm);
    case SettingKind::policy:
    case SettingKind::sms_per_gpu:
    case SettingKind::bytes_per_gpu:
      settings.*setting.text = value;
      return {};
    case SettingKind::join: {
      std::string problem;
      settings.*setting.text = slicefile::join_by_ids(value, problem);
      if (!problem.empty()) return usage(where + ": " + problem);
      return {};
    }
    case SettingKind::user:
    case SettingKind::group:
      return set_owner(value, where, settings);
  }
  return {};
}

Outcome<void> apply_assignment(std::string_view assignment, ipc::SliceSettings& settings) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return usage(in_quotes(assignment) + " is not KEY=VALUE; write for example max=40");
  std::string key(assignment.substr(0, equals));
  std::replace(key.begin(), key.end(), '_', '-');
  std::vector<std::string> names;
  for (const SliceSetting* setting : setting_options()) {
    if (names.emplace_back(setting->option) != key) continue;
    if (is_given(*setting, settings)) return usage(key + ": is given twice; give it once");
    return apply_setting(*setting, assignment.substr(equals + 1), key, settings);
  }
  const std::string meant = hint(key, names);
  return usage("there is no setting " + in_quotes(key) + (meant.empty() ? "; gpuctl set --help lists them" : meant));
}

Outcome<std::string> slice_path(std::string_view name) {
  if (name.empty()) return usage("the name of the slice is empty; give one such as 'batch', or '/' for the root");
  const std::size_t first = name.find_first_not_of('/');
  if (first == std::string_view::npos) return std::string("/");
  return std::string(name.substr(first, name.find_last_not_of('/') - first + 1));
}

std::string user_name(std::int64_t uid) {
  const passwd* entry = uid >= 0 && uid <= kIdGreatest ? ::getpwuid(static_cast<uid_t>(uid)) : nullptr;
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

void note_links(const ipc::SliceSettings& settings, std::ostream& err) {
  for (const std::string& line : slicefile::linked_exes(settings.join.value_or(""))) err << "note: " << line << '\n';
}

std::string join_names(std::string_view join) {
  std::string names;
  for (const Join& one : parse_join(join).value_or(std::vector<Join>())) {
    names.append(names.empty() ? "" : ",").append(kJoinWords[static_cast<std::size_t>(one.by)]) += ':';
    names += one.by == Join::By::user ? user_name(one.id) : one.by == Join::By::group ? group_name(one.id) : one.text;
  }
  return names.empty() ? std::string(kNobodyJoins) : names;
}

std::string group_name(std::int64_t gid) {
  if (gid < 0 || gid > kIdGreatest) return "-";
  const ::group* entry = ::getgrgid(static_cast<gid_t>(gid));
  return entry != nullptr ? entry->gr_name : std::to_string(gid);
}

Outcome<std::int64_t> user_id(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());  // names first: a user may be called 1000
  if (entry != nullptr) return std::int64_t{entry->pw_uid};
  if (const auto number = parse_integer(user)) return *number;
  return usage("--user: there is no user '" + user + "'; give a user's name or number");
}

}  // namespace gpuctl::cli
