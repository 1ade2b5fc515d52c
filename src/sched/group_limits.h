// What the driver is to limit itself: the memory of control groups that the `join` of a slice names, if their programs
// are all of that slice. The driver counts all that they take, with the library or without. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "sched/on_gpu.h"
#include "sched/slices.h"

namespace gpuctl::sched {

/// What a program may take of a GPU beside the memory that the library counts. A context on an H200 takes some 600 MiB,
/// and the code of a framework, as far as it is loaded, some hundred MiB. The driver keeps stacks for all 2048 threads
/// of each SM at once: 8 MiB where a kernel has 4 KiB for each thread, which few come near.
inline constexpr std::uint64_t kContextAndCode = std::uint64_t{1} << 30, kStacksOfSm = std::uint64_t{8} << 20;

/// As the driver says it.
inline constexpr std::uint64_t kNoDriverLimit = std::numeric_limits<std::uint64_t>::max();

/// A program that is attached.
struct GroupedProgram {
  std::string cgroup;  ///< path; "": not known
  std::string slice;
};

/// A control group that a slice names.
struct GroupOfSlice {
  std::string slice;         ///< which all its programs are of, or of those below it; "": there is none
  std::size_t programs = 0;  ///< in the group, and below it
};

/// By path, those in which there are programs. A unit is that of the system: only slices of systemd are above it. What
/// has its name elsewhere is of a user or of a service, and each could make any number of them.
std::map<std::string, GroupOfSlice> groups_of_slices(const Slices& slices, std::span<const GroupedProgram> programs);

/// Bytes for such a group on a GPU. There is room for one program more than there are, rounded up to a power of two:
/// who starts has a context before the limit is raised, and seldom has to wait for that. No limit where the slice has
/// none there, or the GPU is no larger.
std::uint64_t driver_limit(std::optional<std::uint64_t> memory_max, std::size_t programs, const GpuSize& gpu);

}  // namespace gpuctl::sched
