// How long each program may keep the GPU before another one's turn comes, where programs take turns on the whole of it
// (no MPS). The GPU itself enforces that, in the middle of any kernel: it is what limits a kernel that cannot be
// evicted. Pure.
//
// - A program that comes second, after one of a slice with a greater priority, or with a reserve where its own has
//   none, gives way at once: the shortest slices there are. Alone on the GPU it loses nothing by that (measured on an
//   H200, 1 us slices: as many of its kernels a second, and the other's p99 at 267 us instead of 2322 us).
// - Two or more that come second also take turns with each other, and a change of programs is not free: they get slices
//   that are longer, and yet shorter than those of the driver.
// - Among equals the time is shared by the weights: the one with the greatest share of the GPU has the slices that the
//   driver made, the others less by as much as their share is less.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::daemon {

/// What the driver makes (measured); which it is on other GPUs does not matter for those who keep it.
inline constexpr std::uint32_t kUsualTimeSliceUs = 2048;
/// Of the only program that comes second. The GPU rounds it to what it can do.
inline constexpr std::uint32_t kGivingWayUs = 1;
/// Of several that come second, the one with the greatest share: others wait 718 us at p99 for one such (measured).
inline constexpr std::uint32_t kSecondUs = 500;
/// Below this a slice of those that take turns with others would be too short against the change of programs.
inline constexpr std::uint32_t kLeastSharedUs = 50;

/// A program on a device.
struct TimeShare {
  std::uint32_t node = 0;  ///< its slice
  std::int32_t priority = 0;
};

/// In us, for each of `programs`; ipc::kDriversTimeSlice for what the driver made.
std::vector<std::uint32_t> time_slices(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs);

}  // namespace gpuctl::daemon
