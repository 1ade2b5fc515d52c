// The paths of slices, and slices by path.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sched/slice.h"

namespace gpuctl::sched {

/// Path of the slice above; "/" for those directly below the root.
std::string_view parent_path(std::string_view path);

/// Calls f with the path and with those of all slices above it.
template <class F>
void for_each_up(std::string_view path, F f) {
  for (; path != "/"; path = parent_path(path)) f(path);
  f(path);
}

/// Whether `path` is `ancestor` or a slice below it.
bool in_or_below(std::string_view path, std::string_view ancestor);

/// Orders paths so that a parent precedes its children. The key of the root is "/".
struct PathLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
using Slices = std::map<std::string, Slice, PathLess>;

}  // namespace gpuctl::sched
