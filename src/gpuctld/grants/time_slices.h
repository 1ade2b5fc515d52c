// How long each program may keep the GPU before another program's turn, where programs take turns on the whole of it
// (no MPS). Programs that share a context count as one: all clients of an MPS server, beside which isolated programs
// have turns. The GPU itself enforces these time slices, in the middle of any kernel, so they also limit a kernel that
// cannot be evicted. Pure.
//
// - A program comes second if another one has a greater priority, or the same priority and a part in a reserve, of its
//   slice or of one above it, where its own slice has none. If it is the only one that comes second it gives way at
//   once: it has the shortest time slices there are. Alone on the GPU it loses nothing by that (measured on an H200
//   with 1 us: as many of its kernels a second, and the other program's p99 at 267 us instead of 2322 us).
// - Switching between programs has a cost. With the shortest time slices each launch of a program that comes first may
//   be a switch there and back. If it launches often, in small pieces, the other program loses much by that, and those
//   that come second get time slices so long that switches cost no more than kMostLost (measured on an H200: a language
//   model that decodes kernel by kernel took a third of the speed of a training beside it, and gained nothing).
// - Two or more programs that come second also take turns with each other. They get time slices that are longer, but
//   shorter than those of the driver.
// - An MPS server that comes second, and no other does, has the turns that were measured for one.
// - Among equals the time is shared by weight. The program with the greatest share of the GPU keeps the driver's time
//   slices; those of the others are shorter, so that what is left of them after the switch is in proportion.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
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
/// What a switch to another program and back costs. Derived, not measured by itself: with time slices of 1 us a
/// training lost 0.32 of its time beside some 9,000 launches a second.
inline constexpr double kSwitchUs = 40;
/// The part of the GPU's time that may be lost by switches.
inline constexpr double kMostLost = 0.05;
/// A program that launches more often than this would cost more than that, if the others had the shortest time slices.
inline constexpr double kOftenPerS = kMostLost * 1e6 / kSwitchUs;
/// For those that come second beside such a program: no more switches than kOftenPerS.
inline constexpr std::uint32_t kSparingUs = static_cast<std::uint32_t>(kSwitchUs / kMostLost);
/// For an MPS server, if nobody else comes second. Beside a vision model batch in the server lost a tenth by it, a
/// training with many small kernels a third (measured on an H100). Shorter ones were not tried.
inline constexpr std::uint32_t kServerSecondUs = 100;
/// What a program loses of each of its time slices by the switch to it. With slices in proportion, weights of 2:1 and
/// 3:1 gave 2.045 and 3.14 times the steps of kernels without much state, and 2.087 and 3.28 of matrix products
/// (measured on an H200): 45 and 83 us.
inline constexpr std::uint32_t kLostOfTurnUs = 60;

inline constexpr std::int32_t kOwnContext = -1;

/// A program on a device.
struct TimeShare {
  std::uint32_t node = 0;  ///< its slice
  std::int32_t priority = 0;
  bool often = false;                 ///< launches_often()
  std::int32_t server = kOwnContext;  ///< whose context it shares, and turns: any number for each MPS server
  /// The longest that it may have, because it yields to a slice with a target for its latency (sched/latency).
  std::optional<std::chrono::microseconds> longest{};
};

/// Whether a program launches often. `before`: what was found last; the bound is lower then, so that time slices do not
/// change to and fro.
constexpr bool launches_often(double per_s, bool before) {
  return per_s > (before ? kOftenPerS / 2 : kOftenPerS);
}

/// In us, for each of `programs`; those in a server all have the server's. ipc::kDriversTimeSlice: the driver's own.
/// `second_us`: for those that come second, in place of what is chosen here; 0: none.
std::vector<std::uint32_t> time_slices(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs,
                                       std::uint32_t second_us = 0);

}  // namespace gpuctl::daemon
