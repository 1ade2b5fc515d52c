#include "sched/group_limits.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "sched/joins.h"

namespace gpuctl::sched {

namespace {

/// As `gpuctl run --scope` names it. A user may take such a name too, for what is the user's own.
bool is_scope_of_run(std::string_view name) {
  return name.starts_with("gpuctl-run-") && name.ends_with(".scope");
}

/// The path up to the last such scope; "": there is none.
std::string_view scope_of_run(std::string_view cgroup) {
  for (std::string_view path = cgroup; path.size() > 1; path = path.substr(0, path.rfind('/')))
    if (is_scope_of_run(path.substr(path.rfind('/') + 1))) return path;
  return {};
}

/// Which groups the program is a reason to limit, each with the slice whose they would be.
std::vector<std::pair<std::string, std::string>> groups_of(const Slices& slices, const GroupedProgram& program) {
  std::vector<std::pair<std::string, std::string>> groups;
  if (!program.cgroup.starts_with('/') || !slices.contains(program.slice)) return groups;
  if (const std::string_view scope = scope_of_run(program.cgroup); !scope.empty())
    groups.emplace_back(scope, program.slice);
  for_each_up(program.slice, [&](std::string_view path) {
    if (const auto above = slices.find(path); above != slices.end())
      for (const Join& join : above->second.join)
        if (const std::string_view named = named_group(join, program.cgroup); !named.empty())
          groups.emplace_back(named, path);
  });
  return groups;
}

}  // namespace

bool in_group(std::string_view cgroup, std::string_view group) {
  return cgroup.starts_with(group) && (cgroup.size() == group.size() || cgroup[group.size()] == '/');
}

std::map<std::string, GroupOfSlice> groups_of_slices(const Slices& slices, std::span<const GroupedProgram> programs) {
  std::map<std::string, GroupOfSlice> found;
  // The slice nearest to the root that has the group: all its programs are in it or below it, or they are of several.
  for (const GroupedProgram& program : programs)
    for (auto& [group, slice] : groups_of(slices, program)) {
      const auto [place, is_new] = found.try_emplace(group, GroupOfSlice{slice});
      if (!is_new && in_or_below(place->second.slice, slice)) place->second.slice = slice;
    }
  std::vector<const GroupedProgram*> sorted;
  for (const GroupedProgram& program : programs) sorted.push_back(&program);
  std::ranges::sort(sorted, {}, &GroupedProgram::cgroup);
  for (auto place = found.begin(); place != found.end();) {
    const auto& group = place->first;
    GroupOfSlice& of = place->second;
    bool all = true;
    for (auto one = std::ranges::lower_bound(sorted, group, {}, &GroupedProgram::cgroup);
         one != sorted.end() && (*one)->cgroup.starts_with(group); ++one) {
      if (!in_group((*one)->cgroup, group)) continue;
      ++of.programs;
      all &= in_or_below((*one)->slice, of.slice);
    }
    place = all ? std::next(place) : found.erase(place);
  }
  return found;
}

DriverLimit driver_limit(std::optional<std::uint64_t> memory_max, std::uint64_t min, std::size_t programs,
                         const GpuSize& gpu) {
  const std::uint64_t uncounted = (programs + 1) * (kContextAndCode + gpu.sms.count * kStacksOfSm);
  if (!memory_max || *memory_max >= gpu.memory || uncounted >= gpu.memory - *memory_max) return {};
  const std::uint64_t hard = *memory_max + uncounted;
  return {.soft = min <= hard ? min : 0, .hard = hard};
}

}  // namespace gpuctl::sched
