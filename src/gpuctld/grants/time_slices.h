// How long each program may keep the GPU before another program's turn, where programs take turns on the whole of it
// (no MPS). The GPU itself enforces these time slices, in the middle of any kernel, so they also limit a kernel that
// cannot be evicted. Pure.
//
// - A program comes second if another one has a greater priority, or the same priority and a reserve where its own
//   slice has none. If it is the only one that comes second it gives way at once: it has the shortest time slices there
//   are. Alone on the GPU it loses nothing by that (measured on an H200 with 1 us: as many of its kernels a second, and
//   the other program's p99 at 267 us instead of 2322 us).
// - Two or more programs that come second also take turns with each other, and switching between programs has a cost.
//   They get time slices that are longer, but shorter than those of the driver.
// - Among equals the time is shared by weight. The program with the greatest share of the GPU keeps the driver's time
//   slices; those of the others are shorter in proportion to their shares.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::daemon {

/// The driver's own time slice (measured). Another GPU may have another one; programs that keep it do not notice.
inline constexpr std::uint32_t kUsualTimeSliceUs = 2048;
/// For the only program that comes second. The GPU rounds it to what it can do.
inline constexpr std::uint32_t kGivingWayUs = 1;
/// Of several that come second, for the one with the greatest share. Others wait 718 us at p99 for one such (measured).
inline constexpr std::uint32_t kSecondUs = 500;
/// A shorter time slice, where it is shared by weight, would be too short against the cost of switching programs.
inline constexpr std::uint32_t kLeastSharedUs = 50;

/// A program on a device.
struct TimeShare {
  std::uint32_t node = 0;  ///< its slice
  std::int32_t priority = 0;
};

/// In us, for each of `programs`; ipc::kDriversTimeSlice: the driver's own.
std::vector<std::uint32_t> time_slices(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs);

}  // namespace gpuctl::daemon
