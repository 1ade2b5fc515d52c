// Which slice a program is in that names none. Pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sched/slices.h"

namespace gpuctl::sched {

/// What is known of a program.
struct Joining {
  Caller caller;
  std::string_view cgroup;    ///< its path, "/system.slice/ollama.service"; "": not known
  std::string_view exe = {};  ///< path of the file that it says it runs, "/usr/bin/ollama"; "": it says nothing
  std::function<bool(std::string_view slice)> may_join = {};  ///< with an exe: anyway (SliceTree::may_join)
};

/// The path of the slice whose setting `join` names the program. If none does: `otherwise`, or "/" if there is no such
/// slice; "" of "". The file that it runs says most of a program, but counts only for slices that it may join
/// anyway: that file is its own word. A unit or a cgroup says more of a program than its user does, and
/// a user more than a group; of several units and cgroups that nearest to the program counts, and of two as near the
/// one that has a path. Units that a user runs by a manager of their own do not count: their names are the user's to
/// choose. Their paths say whose they are.
std::string slice_to_join(const Slices& slices, const Joining& program, std::string_view otherwise = "/");

/// What of the list names the program for which the library is mandatory, "user:1000"; "": nothing. `list`: as `join`
/// of a slice, where user:* is each ordinary user. Programs of root and of system users are named by their user alone:
/// a unit or a group may have some that nobody thought of.
std::string mandatory_for(std::string_view list, const Joining& program);

/// Whether any slice names a unit or a cgroup.
bool join_by_cgroup(const Slices& slices);

/// What the slice `path` is to name, and another one names, for a person: "user 1000 joins b already"; "": nothing.
std::string named_twice(const Slices& slices, std::string_view path, std::span<const Join> joins);

/// Whether any two slices name the same.
bool any_named_twice(const Slices& slices);

}  // namespace gpuctl::sched
