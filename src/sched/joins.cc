#include "sched/joins.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace gpuctl::sched {

namespace {

/// The manager of a user's own units. They have what names the user likes, so these tell nothing.
bool is_manager_of_user(std::string_view unit) {
  return unit.starts_with("user@") && unit.ends_with(".service");
}

/// Neither root nor somebody as whom a part of the system runs: those below 1000, those that systemd gives to services,
/// and nobody.
bool is_ordinary(std::uint32_t uid) {
  constexpr std::uint32_t kFirst = 1000, kFirstOfServices = 61184, kFirstBehind = 65536;
  return uid >= kFirst && (uid < kFirstOfServices || uid >= kFirstBehind);
}

/// Where the unit stands in the path of the cgroup: the greater, the nearer to the program; 0: nowhere.
std::size_t place_of(std::string_view unit, std::string_view cgroup) {
  std::size_t found = 0, place = 0;
  while (!cgroup.empty()) {
    const std::size_t slash = std::min(cgroup.find('/'), cgroup.size());
    ++place;
    if (cgroup.substr(0, slash) == unit) found = place;
    if (is_manager_of_user(cgroup.substr(0, slash))) break;
    cgroup.remove_prefix(std::min(slash + 1, cgroup.size()));
  }
  return found;
}

/// How many directories the path of the cgroup has, which is `path` or below it; 0: it is not.
std::size_t below(std::string_view path, std::string_view cgroup) {
  const bool is = cgroup.starts_with(path) && (cgroup.size() == path.size() || cgroup[path.size()] == '/');
  return is ? static_cast<std::size_t>(1 + std::ranges::count(path, '/')) : 0;
}

/// How near to the program what names it is; 0: it does not name it.
std::size_t fits(const Join& join, const Joining& program) {
  switch (join.by) {
    case Join::By::unit:
      return place_of(join.text, program.cgroup);
    case Join::By::cgroup:
      return below(join.text, program.cgroup);
    case Join::By::exe:
      return join.text == program.exe;
    case Join::By::user:
      return join.id == program.caller.uid;
    case Join::By::group:
      return std::ranges::find(program.caller.gids, join.id) != program.caller.gids.end();
  }
  return 0;
}

/// How much it says of a program to be named by this.
int weight_of(Join::By by) {
  return by == Join::By::group ? 1 : by == Join::By::user ? 2 : by == Join::By::exe ? 4 : 3;
}

}  // namespace

std::string slice_to_join(const Slices& slices, const Joining& program, std::string_view otherwise) {
  std::tuple<int, std::size_t, bool> best{};  // how much it says, how near, and whether by a path
  std::string path(otherwise.empty() || slices.contains(otherwise) ? otherwise : "/");
  for (const auto& [other, slice] : slices)
    for (const Join& join : slice.join)
      if (const std::size_t near = fits(join, program);
          near > 0 && (join.by != Join::By::exe || program.may_join(other)))
        if (const std::tuple says(weight_of(join.by), near, join.by == Join::By::cgroup); says > best)
          best = says, path = other;
  return path;
}

std::string mandatory_for(std::string_view list, const Joining& program) {
  const bool ordinary = is_ordinary(program.caller.uid);
  for (const Join& join : parse_join(list, true).value_or(std::vector<Join>())) {
    const bool every_user = join.by == Join::By::user && join.id == kEveryUserId;
    if (every_user ? ordinary : (ordinary || join.by == Join::By::user) && fits(join, program) > 0)
      return std::string(kJoinWords[static_cast<std::size_t>(join.by)]) + ":" + join.text;
  }
  return {};
}

bool join_by_cgroup(const Slices& slices) {
  return std::ranges::any_of(slices, [](const auto& entry) {
    return std::ranges::any_of(
        entry.second.join, [](Join::By by) { return by == Join::By::unit || by == Join::By::cgroup; }, &Join::by);
  });
}

std::string named_twice(const Slices& slices, std::string_view path, std::span<const Join> joins) {
  for (const Join& join : joins)
    for (const auto& [other, slice] : slices)
      if (other != path && std::ranges::find(slice.join, join) != slice.join.end())
        return std::string(kJoinWords[static_cast<std::size_t>(join.by)]) + " " + join.text + " joins " + other +
               " already";
  return {};
}

bool any_named_twice(const Slices& slices) {
  std::set<std::pair<Join::By, std::string_view>> named;
  return std::ranges::any_of(slices, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.join,
                               [&](const Join& join) { return !named.emplace(join.by, join.text).second; });
  });
}

}  // namespace gpuctl::sched
