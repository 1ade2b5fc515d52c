// What a kernel in persistent form and the runtime that launches it agree upon (DESIGN: "launch block").
//
// One launch owns one DeviceSlot and one HostSlot, zero when it is issued and not reused before every worker ever launched
// on them is known to have left. That is the whole defence against stale workers: no sequence numbers, no reset on the
// device, so a worker that starts late finds `next >= total` and leaves.
//
// A worker is a thread block of a persistent grid (1-D); its ordinal is %ctaid.x. The first grid of a launch runs in
// the program's stream with `workers` workers; the agent may launch further grids (kAgentGrid) on its own stream, whose
// leaders add 1 to `extra` when they enter. The leader, the thread with linear tid 0, claims chunks of block-tasks in
// rising order with one atomic add on `next`.
//
// The holder. The worker with ordinal 0 of the in-stream grid stays until all block-tasks are complete, so the program's
// stream does not go on before: order in the stream is kept by the kernel itself, with no stream operation behind it.
// Evicted, it sleeps a few microseconds at a time and polls; with nothing left to claim, it waits for the others.
//
// The limit. A worker with ordinal < pollers is a poller (the holder always is): before each claim it reads the two host
// words (over PCIe, in one go) and stores min(*grant, *stream_limit) * per_sm + 1 in DeviceSlot::limit. All workers obey
// that word; 0 means "not polled yet, no limit". A poller also posts `left`, `progress` and `task_ns` to the HostSlot.
//
// Leaving because of the limit (value L = limit - 1), before a claim, counts heads instead of naming ordinals, so that
// it is right however grids were added and however often the limit moved:
//   present = workers + extra - leaving      (from one 16-byte volatile load of next, limit, leaving, extra)
//   L == 0:      atomic add 1 on `leaving` and leave; the holder rests.
//   present > L: old = atomic add 1 on the 64-bit word {leaving, extra}. If workers + old.extra - old.leaving > L,
//                leave; else undo (atomic add -1) and claim as usual. The holder skips this rule.
// Leaving because nothing is left to claim needs none of this.
//
// Every leaving worker: fence at system scope in an agent's grid, whose kernel boundary is not in the program's stream, and
// in a poller, whose posts to the host must come first (the rest of the in-stream grid needs none: what follows in the
// stream comes after it); then atomic add 1 on `left`; l is the result + 1. The holder first waits until it is the
// last one present. If l == workers + extra (read again) and `next >= total` (read again), it writes HostSlot::done_ns and
// done = 1. Every claimed chunk is finished by its claimer before that one counts as left, so then all block-tasks are
// complete and visible. The last one, and the one with l == workers + extra - max(L, 1), post `left` (and, if it leaves
// because of the limit, left_ns) to the HostSlot: so the host learns that an eviction holds, and since when.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuctl::ptx {

/// In device memory, 64-byte aligned. Fields are written by workers alone, after the host zeroed them.
struct DeviceSlot {
  std::uint32_t next;     ///< first unclaimed block-task; ends above total
  std::uint32_t limit;    ///< workers allowed + 1; 0 = not polled yet
  std::uint32_t leaving;  ///< workers that leave or left because of the limit; with `extra` one 64-bit atomic
  std::uint32_t extra;    ///< workers of agent grids that entered (add 1 << 32 to the 64-bit word at `leaving`)
  std::uint32_t left;     ///< workers that left, for whatever reason
  std::uint32_t reserved[11];
};
static_assert(sizeof(DeviceSlot) == 64 && offsetof(DeviceSlot, leaving) == 8 && offsetof(DeviceSlot, left) == 16);

/// In mapped host memory, 64-byte aligned. Written by workers with plain volatile system stores, read by the runtime.
struct HostSlot {
  std::uint32_t started;   ///< 1 once the in-stream grid runs: only then may the agent launch more workers
  std::uint32_t done;      ///< 1 when all block-tasks are complete
  std::uint32_t left;      ///< DeviceSlot::left as last posted (by pollers, and by the leavers named above)
  std::uint32_t progress;  ///< block-tasks claimed, as a poller last saw it (not above total)
  std::uint64_t start_ns;  ///< %globaltimer when the in-stream grid started
  std::uint64_t done_ns;   ///< %globaltimer when the last worker left
  std::uint64_t left_ns;   ///< %globaltimer when a leaver last posted `left` because of the limit (an eviction holds)
  std::uint32_t task_ns;   ///< duration of one block-task, from a poller's latest chunk; 0 = not measured
  std::uint32_t reserved[5];
};
static_assert(sizeof(HostSlot) == 64);

/// Passed by value as the last parameter of a persistent entry, appended after the program's own parameters.
struct LaunchArgs {
  std::uint64_t slot;          ///< device address of the DeviceSlot
  std::uint64_t host;          ///< device-visible address of the HostSlot
  std::uint64_t grant;         ///< device-visible address of a u32: CapSM the client may use (the stub page)
  std::uint64_t stream_limit;  ///< device-visible address of a u32: CapSM this stream may use of that
  std::uint32_t total;         ///< block-tasks: grid_x * grid_y * grid_z, at most kMaxBlockTasks
  std::uint32_t grid_x;        ///< the program's grid
  std::uint32_t grid_y;
  std::uint32_t grid_z;
  std::uint32_t chunk;         ///< block-tasks per claim, at least 1
  std::uint32_t per_sm;        ///< workers of this kernel that one SM holds (one CapSM), at least 1
  std::uint32_t workers;       ///< workers of the in-stream grid, whichever grid this is
  std::uint32_t pollers;       ///< ordinals below it poll the host, at least 1; 0 in an agent's grid
  std::uint32_t reserved;
  std::uint32_t flags;         ///< kAgentGrid
};
static_assert(sizeof(LaunchArgs) == 72 && alignof(LaunchArgs) == 8);
static_assert(offsetof(LaunchArgs, total) == 32 && offsetof(LaunchArgs, chunk) == 48);

/// LaunchArgs::flags: this grid was launched by the agent, not in the program's stream.
inline constexpr std::uint32_t kAgentGrid = 1;

/// `next` must not wrap when every worker of every grid claims once past the end.
inline constexpr std::uint64_t kMaxBlockTasks = 0x7fffffff;

/// Appended to the name of an entry to name its persistent form.
inline constexpr char kPersistentSuffix[] = "__gpuslice_persistent";

}  // namespace gpuctl::ptx
