#include "sched/place_notes.h"

#include <algorithm>
#include <set>

#include "base/plural.h"

namespace gpuctl::sched {

namespace {

bool has_target(const Slice& slice) {
  return slice.latency != slice_setting("latency").text_default;
}

/// Slices directly below `path`.
template <class F>
void for_each_child(const Slices& slices, std::string_view path, F f) {
  for (auto at = slices.upper_bound(path); at != slices.end() && in_or_below(at->first, path); ++at)
    if (parent_path(at->first) == path) f(at->second);
}

/// Whether it has a priority, and slices below it of which none has one.
bool has_priority_alone(const Slices& slices, std::string_view path) {
  const auto slice = slices.find(path);
  if (path == "/" || slice == slices.end() || slice->second.priority <= 0) return false;
  bool any = false, set = false;
  for_each_child(slices, path, [&](const Slice& child) {
    any = true;
    set |= child.priority != 0;
  });
  return any && !set;
}

}  // namespace

std::vector<std::string> place_notes(const Slices& slices, std::span<const std::string> paths) {
  std::vector<std::string> lines;
  std::set<std::string_view> looked_at;
  for (const std::string& path : paths) {
    if (path == "/") continue;
    for (const std::string_view one : {std::string_view(path), parent_path(path)})
      if (looked_at.insert(one).second && has_priority_alone(slices, one))
        lines.push_back("priority " + std::to_string(slices.find(one)->second.priority) + " of slice " +
                        std::string(one) + " is for programs directly in it: slices below have 0, as none is set");
    const auto slice = slices.find(path);
    const std::string_view above = parent_path(path);
    if (slice == slices.end() || above == "/" || !has_target(slice->second)) continue;
    if (has_target(slices.find(above)->second)) continue;
    const bool others = std::ranges::any_of(slices, [&](const auto& other) {
      return !in_or_below(other.first, above) && !in_or_below(above, other.first);
    });
    if (others)
      lines.push_back("to the latency of slice " + path + " only what is in " + std::string(above) +
                      " yields: if others are to, set it for " + std::string(above));
  }
  return lines;
}

std::string all_reserved(const Slices& slices, std::span<const NodeInput> nodes, std::span<const std::string> paths,
                         CapSM device, const std::string& name) {
  CapSM sum{};
  bool concerned = false;
  for (std::size_t n = 0; const auto& [path, slice] : slices) {
    const NodeInput& node = nodes[n++];
    if (node.parent != 0 || node.reserve == CapSM{}) continue;
    sum += node.reserve;
    concerned |= std::ranges::find(paths, path) != paths.end();
  }
  if (!concerned || sum < device) return {};
  return "all " + plural(device.count, "SM") + " of " + name +
         " are reserved now: none is left for others while these are kept";
}

}  // namespace gpuctl::sched
