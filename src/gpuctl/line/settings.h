// Settings of a slice as people write them, both for `create-slice --max none` and for `set NAME max=none`.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "base/slice_settings.h"
#include "gpuctl/text/failure.h"
#include "ipc/types.h"

namespace gpuctl::cli {

/// The settings that have an option of their own, in the order of help and manual.
std::vector<const SliceSetting*> setting_options();

/// "Policies:" and a line for each, for the help of verbs that take a policy.
std::string policy_help();

/// Puts one value into `settings`. `where` starts the error message: "--max" or "max". `setting` is one of
/// setting_options().
Outcome<void> apply_setting(const SliceSetting& setting, std::string_view value, const std::string& where,
                            ipc::SliceSettings& settings);

/// "max=40": splits it, checks the key, and refuses a key that `settings` has already.
Outcome<void> apply_assignment(std::string_view assignment, ipc::SliceSettings& settings);

/// "/batch/train/" as "batch/train"; "/" stays. The daemon checks which names are valid; here a name must not be empty.
Outcome<std::string> slice_path(std::string_view name);

/// A line for each link in the setting `join`. Looked for here: whose path it is may keep who follows it waiting.
void note_links(const ipc::SliceSettings& settings, std::ostream& err);

/// The setting `join` with the names of users and groups.
std::string join_names(std::string_view join);

/// "root", "alice", or the number if there is no such user here; the same for groups.
std::string user_name(std::int64_t uid);
std::string group_name(std::int64_t gid);
/// Of --user: a name or a number.
Outcome<std::int64_t> user_id(const std::string& user);

}  // namespace gpuctl::cli
