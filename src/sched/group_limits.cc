#include "sched/group_limits.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace gpuctl::sched {

std::map<std::string, GroupOfSlice> groups_of_slices(const Slices& slices, std::span<const GroupedProgram> programs) {
  std::map<std::pair<Join::By, std::string_view>, std::string_view> named;  // the slice that names it
  for (const auto& [path, slice] : slices)
    for (const Join& join : slice.join) named[{join.by, join.text}] = path;
  const auto naming = [&](Join::By by, std::string_view what) {
    const auto found = named.find({by, what});
    return found == named.end() ? std::string_view() : found->second;
  };
  struct Found {
    std::size_t programs = 0;
    bool all = true;  // they are of the slice
  };
  std::map<std::pair<std::string_view, std::string_view>, Found> found;  // by group, and by slice
  for (const auto& [cgroup, of] : programs) {
    bool of_system = cgroup.starts_with('/');
    for (std::size_t slash = 0, end = 0; end < cgroup.size(); slash = end) {
      end = std::min(cgroup.find('/', slash + 1), cgroup.size());
      const std::string_view path = std::string_view(cgroup).substr(0, end), name = path.substr(slash + 1);
      const std::string_view by_path = naming(Join::By::cgroup, path),
                             by_name = of_system ? naming(Join::By::unit, name) : std::string_view();
      for (const std::string_view slice : {by_path, by_name == by_path ? std::string_view() : by_name}) {
        if (slice.empty()) continue;
        Found& group = found[{path, slice}];
        ++group.programs;
        group.all &= in_or_below(of, slice);
      }
      of_system &= name.ends_with(".slice");
    }
  }
  std::map<std::string, GroupOfSlice> groups;
  for (const auto& [key, its] : found) {
    GroupOfSlice& group = groups[std::string(key.first)];
    if (its.all) group.slice = key.second;  // of two that name it the one below the other
    group.programs = its.programs;
  }
  return groups;
}

std::uint64_t driver_limit(std::optional<std::uint64_t> memory_max, std::size_t programs, const GpuSize& gpu) {
  const std::uint64_t uncounted = std::bit_ceil(programs + 1) * (kContextAndCode + gpu.sms.count * kStacksOfSm);
  if (!memory_max || *memory_max >= gpu.memory || uncounted >= gpu.memory - *memory_max) return kNoDriverLimit;
  return *memory_max + uncounted;
}

}  // namespace gpuctl::sched
