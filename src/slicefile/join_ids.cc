#include "slicefile/join_ids.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/join_text.h"
#include "base/one_line.h"
#include "base/parts.h"

namespace gpuctl::slicefile {

std::optional<std::int64_t> user_id(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  return entry == nullptr ? std::nullopt : std::optional<std::int64_t>(entry->pw_uid);
}

std::optional<std::int64_t> group_id(const std::string& name) {
  const ::group* entry = ::getgrnam(name.c_str());
  return entry == nullptr ? std::nullopt : std::optional<std::int64_t>(entry->gr_gid);
}

std::string join_by_ids(std::string_view text, std::string& problem, bool mandatory) {
  std::string ids;
  each_part(text, [&](std::string_view part) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const std::string_view word = part.substr(0, colon);
    std::string name(part.substr(std::min(colon + 1, part.size())));
    const bool user = word == "user" && !(mandatory && name == kEveryUser), group = word == "group";
    // Names first: a user may be called 1000.
    if (const auto id = user ? user_id(name) : group ? group_id(name) : std::nullopt)
      name = std::to_string(*id);
    else if ((user || group) && (name.empty() || name.find_first_not_of("0123456789") != std::string::npos))
      problem =
          "there is no " + std::string(word) + " '" + name + "'; give a " + std::string(word) + "'s name or number";
    else if (word == "exe" && mandatory)
      problem = "exe names programs for the join of a slice alone; name a user, a group, a unit or a cgroup";
    else if (word == "exe" && !is_full_path(name))
      problem = "exe '" + name +
                "' is no full path of a program, in at most 255 characters of ASCII, such as exe:/usr/bin/ollama";
    ids.append(part.data() == text.data() ? "" : ",").append(word);
    if (colon < part.size()) ids.append(":").append(name);
    return true;
  });
  if (problem.empty() && !parse_join(ids, mandatory)) problem = "must be " + std::string(kJoinForm);
  return ids;
}

std::vector<std::string> linked_exes(std::string_view text) {
  std::vector<std::string> lines;
  for (const Join& one : parse_join(text).value_or(std::vector<Join>())) {
    if (one.by != Join::By::exe) continue;
    std::error_code hidden;  // or there is none
    const std::string file = std::filesystem::canonical(one.text, hidden);
    if (hidden || file == one.text) continue;
    lines.push_back(one_line("exe:" + one.text + " has no programs as long as it is a link: they are known by " + file +
                             ", so say exe:" + file));
  }
  return lines;
}

}  // namespace gpuctl::slicefile
