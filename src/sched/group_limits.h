// What the driver is to limit itself: the memory of control groups whose processes are all of one slice. The driver
// counts all that they take, with the library or without. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sched/on_gpu.h"
#include "sched/slices.h"

namespace gpuctl::sched {

/// What a program may take of a GPU beside the memory that the library counts. A context on an H200 takes some 600 MiB,
/// and the code of a framework, as far as it is loaded, some hundred MiB. The driver keeps stacks for all 2048 threads
/// of each SM at once: 8 MiB where a kernel has 4 KiB for each thread, which few come near.
inline constexpr std::uint64_t kContextAndCode = std::uint64_t{1} << 30, kStacksOfSm = std::uint64_t{8} << 20;

inline constexpr std::uint64_t kNoDriverLimit = std::numeric_limits<std::uint64_t>::max();

/// In bytes, as the driver takes it.
struct DriverLimit {
  std::uint64_t soft = 0, hard = kNoDriverLimit;  ///< as they are: no limit
  bool operator==(const DriverLimit&) const = default;
  bool limits() const { return hard != kNoDriverLimit; }
};

/// A program that is attached.
struct GroupedProgram {
  std::string cgroup;  ///< path; "": not known
  std::string slice;
};

/// A control group whose known programs are all of the slice, or of those below it.
struct GroupOfSlice {
  std::string slice;
  std::size_t programs = 0;  ///< in it, and below it
};

/// Whether the control group is `group`, or below it.
bool in_group(std::string_view cgroup, std::string_view group);

/// By path. Those that count: the scope of a `gpuctl run --scope`, and what the `join` of the program's own slice, or
/// of one above it, names as a unit or as a cgroup.
std::map<std::string, GroupOfSlice> groups_of_slices(const Slices& slices, std::span<const GroupedProgram> programs);

/// For such a group on a GPU. Room for one program more than there are: who starts has a context before the limit is
/// raised. No limit where the slice has none there, or the GPU is no larger. `min`: is kept for the slice.
DriverLimit driver_limit(std::optional<std::uint64_t> memory_max, std::uint64_t min, std::size_t programs,
                         const GpuSize& gpu);

}  // namespace gpuctl::sched
