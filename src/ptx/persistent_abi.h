// What a kernel in persistent form and the runtime that launches it agree upon (DESIGN: "launch block").
//
// One launch owns one DeviceSlot and one HostSlot, zero when it is issued and not reused before every worker ever launched
// on them is known to have left. That is the whole defence against stale workers: no sequence numbers, no reset on the
// device, so a worker that starts late finds `next >= total` and leaves.
//
// A worker is a thread block of a persistent grid (1-D). The first grid of a launch runs in the program's stream with
// `workers` workers; the agent may launch further grids (kAgentGrid) on its own streams, whose leaders add 1 to `extra`
// when they enter. The leader, the thread with linear tid 0, claims chunks of block-tasks in rising order with one
// atomic add on `next`.
//
// SMs. A grant names the SMs a launch may use, and a worker obeys it for the SM it runs on: before each claim it looks
// at its own bit, and on an SM that is not allowed it leaves. The hardware places workers wherever there is room, so
// some of a grid leave at once; the runtime starts as many more. What is allowed the device slot says once `polled` is 1
// and LaunchArgs before.
//
// Polling. Before a claim, a leader that finds `polling` older than kPollEveryNs takes it over (compare and swap), reads
// the two sets of SMs in host memory (over PCIe, in one go), stores the complement of their intersection in `forbidden`,
// then 1 in `polled`, and posts `left` and `progress` to the HostSlot. So the host is read at that rate however many
// workers there are, and whichever. That leader measures its next chunk too, and posts `task_ns`.
//
// The holder. The last worker of the in-stream grid does not leave before all block-tasks are complete, so the program's
// stream does not go on before: order in the stream is kept by the kernel itself, with no stream operation behind it.
// Whoever leaves the in-stream grid adds 1 to `gone`; the one that makes it `workers` is the holder. On an SM that is
// not allowed it takes that back and rests: it sleeps a few microseconds at a time and looks again. With nothing left to
// claim it waits until left == workers + extra - 1.
//
// `here` counts by SM the workers that may claim; a resting holder is not among them. While an eviction is under way the
// runtime reads it, to learn that no worker is left on a forbidden SM.
//
// Every leaving worker: fence at system scope in an agent's grid, whose kernel boundary is not in the program's stream,
// and in the holder, whose posts to the host must come first (the rest of the in-stream grid needs none: what follows in
// the stream comes after it); then atomic add 1 on `left`; l is the result + 1. One that leaves because of its SM posts
// left_ns and l to the HostSlot. The holder, when all others have left, writes HostSlot::done_ns and done = 1: every
// claimed chunk is finished by its claimer before that one counts as left, so then all block-tasks are complete and
// visible. Workers of an agent's grid that come later find nothing to claim, and post l.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sm_set.h"

namespace gpuctl::ptx {

/// In device memory, 64-byte aligned. Fields are written by workers alone, after the host zeroed them.
struct DeviceSlot {
  std::uint32_t next;     ///< first unclaimed block-task; ends above total
  std::uint32_t polling;  ///< %globaltimer_lo, made odd, when the latest poll of the host began; 0 = none yet
  std::uint32_t polled;   ///< 1: `forbidden` is valid
  std::uint32_t extra;    ///< workers of agent grids that entered
  std::uint32_t left;     ///< workers that left, for whatever reason
  std::uint32_t gone;     ///< those of the in-stream grid that left, or are leaving
  std::uint32_t reserved[2];
  SmSet::Words forbidden;      ///< SMs not to be used
  std::uint8_t here[kMaxSms];  ///< workers that may claim, by SM
};
static_assert(sizeof(DeviceSlot) == 320 && offsetof(DeviceSlot, forbidden) == 32 && offsetof(DeviceSlot, here) == 64);

/// In mapped host memory, 64-byte aligned. Written by workers with plain volatile system stores, read by the runtime.
struct HostSlot {
  std::uint32_t started;   ///< 1 once the in-stream grid runs: only then may the agent launch more workers
  std::uint32_t done;      ///< 1 when all block-tasks are complete
  std::uint32_t left;      ///< DeviceSlot::left as last posted
  std::uint32_t progress;  ///< block-tasks claimed, as of the latest poll (not above total)
  std::uint64_t start_ns;  ///< %globaltimer when the in-stream grid started
  std::uint64_t done_ns;   ///< %globaltimer when the last worker left
  std::uint64_t left_ns;   ///< %globaltimer when a worker last left because of its SM
  std::uint32_t task_ns;   ///< duration of one block-task, of the latest chunk measured; 0 = none yet
  std::uint32_t resting;   ///< 1 while the holder rests: it is there, but claims nothing
  std::uint32_t reserved[4];
};
static_assert(sizeof(HostSlot) == 64);

/// Passed by value as the last parameter of a persistent entry, appended after the program's own parameters.
struct LaunchArgs {
  std::uint64_t slot;        ///< device address of the DeviceSlot
  std::uint64_t host;        ///< device-visible address of the HostSlot
  std::uint64_t grant;       ///< device-visible address of an SmSet: the SMs the client may use (the stub page)
  std::uint64_t stream_sms;  ///< device-visible address of an SmSet: those this stream may use
  std::uint32_t total;       ///< block-tasks: grid_x * grid_y * grid_z, at most kMaxBlockTasks
  std::uint32_t grid_x;      ///< the program's grid
  std::uint32_t grid_y;
  std::uint32_t grid_z;
  std::uint32_t chunk;    ///< block-tasks per claim, at least 1
  std::uint32_t workers;  ///< workers of the in-stream grid, whichever grid this is
  std::uint32_t flags;    ///< kAgentGrid
  std::uint32_t taper;    ///< a claim takes (total - next) >> taper block-tasks, at least 1 and at most `chunk`
  SmSet::Words allowed;  ///< SMs to use until the first poll
};
static_assert(sizeof(LaunchArgs) == 96 && alignof(LaunchArgs) == 8);
static_assert(offsetof(LaunchArgs, total) == 32 && offsetof(LaunchArgs, chunk) == 48 &&
              offsetof(LaunchArgs, allowed) == 64);

/// LaunchArgs::flags: this grid was launched by the agent, not in the program's stream.
inline constexpr std::uint32_t kAgentGrid = 1;

/// The host is polled no more often: more polling slows kernels down.
inline constexpr std::uint32_t kPollEveryNs = 2000;

/// `next` must not wrap when every worker of every grid claims once past the end.
inline constexpr std::uint64_t kMaxBlockTasks = 0x7fffffff;

/// Appended to the name of an entry to name its persistent form.
inline constexpr char kPersistentSuffix[] = "__gpuslice_persistent";

}  // namespace gpuctl::ptx
